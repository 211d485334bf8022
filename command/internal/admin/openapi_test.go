package admin_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
)

// described is the document, and finds the route of a request in it.
func described(t testing.TB) (*openapi3.T, routers.Router) {
	t.Helper()
	text, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	router, err := gorillamux.NewRouter(document)
	require.NoError(t, err)
	return document, router
}

// check holds every answer of the API against its description.
func check(t testing.TB, r *http.Request, a answered) {
	t.Helper()
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return
	}
	require.Contains(t, a.header.Get("Cache-Control"), "no-store", r.URL.Path)
	_, router := described(t)
	route, parameters, err := router.FindRoute(r)
	if err != nil { // an attack on a route that does not exist
		require.GreaterOrEqual(t, a.status, 300, r.URL.Path)
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: parameters},
		Status:                 a.status, Header: a.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: a.header.Get("Content-Type") == "application/yaml"},
	}
	input.SetBodyBytes([]byte(a.body))
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), input), "%s %s: %s", r.Method, r.URL.Path, a.body)
}

// asked holds a request against the description, as a client made from it would send it.
func asked(t testing.TB, s *site, q request) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, s.url+q.path, strings.NewReader(q.body))
	require.NoError(t, err)
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	_, router := described(t)
	route, parameters, err := router.FindRoute(r)
	require.NoError(t, err)
	r.Body = io.NopCloser(bytes.NewReader([]byte(q.body)))
	require.NoError(t, openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: r, Route: route, PathParams: parameters,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}))
}

func TestOpenAPI_IsValidAndServed(t *testing.T) {
	t.Parallel()
	document, _ := described(t)
	require.NoError(t, document.Validate(context.Background()))
	s := open(t, logins, processA)
	a := s.send(request{path: "/api/v1/openapi.yaml"})
	text, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	require.Equal(t, string(text), a.body)
}

// An answer that the description does not have fails each test that gets it.
func TestOpenAPI_FindsAnAnswerThatItDoesNotDescribe(t *testing.T) {
	t.Parallel()
	_, router := described(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/api/v1/me", nil)
	require.NoError(t, err)
	route, parameters, err := router.FindRoute(r)
	require.NoError(t, err)
	for body, valid := range map[string]bool{
		`{"name":"","read":true,"operate":false,"payloads":false,"csrf":"x"}`:          true,
		`{"name":"","read":true,"operate":false,"payloads":false}`:                     false,
		`{"name":"","read":true,"operate":false,"payloads":false,"csrf":"x","more":1}`: false,
	} {
		input := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: parameters},
			Status:                 http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		}
		input.SetBodyBytes([]byte(body))
		require.Equal(t, valid, openapi3filter.ValidateResponse(t.Context(), input) == nil, body)
	}
}
