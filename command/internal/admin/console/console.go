package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

//go:embed assets templates
var files embed.FS

// Config describes a Console.
type Config struct {
	// Desk answers and decides. Required.
	Desk *desk.Desk
	// Logger is required.
	Logger *slog.Logger
}

// Console serves the pages.
type Console struct {
	desk   *desk.Desk
	log    *slog.Logger
	mux    *http.ServeMux
	assets map[string]asset
	pages  map[string]*template.Template
}

// asset is a file that pages refer to. Its address has its digest, so that browsers may keep it.
type asset struct {
	content []byte
	mime    string
	address string
}

// New reads the templates.
func New(c Config) *Console {
	console := &Console{desk: c.Desk, log: c.Logger, mux: http.NewServeMux(), assets: readAssets(), pages: map[string]*template.Template{}}
	layout := template.Must(template.New("").Funcs(template.FuncMap{"asset": console.address}).ParseFS(files, "templates/layout.html"))
	for _, name := range []string{"fleet", "process", "find", "letters", "letter", "audit", "doctor", "login", "fault"} {
		page := template.Must(template.Must(layout.Clone()).ParseFS(files, "templates/decision.html", "templates/"+name+".html"))
		console.pages[name] = page
	}
	console.routes()
	return console
}

func (c *Console) routes() {
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /{$}":                       c.fleet,
		"GET /live":                      c.fleetLive,
		"GET /processes/{name}":          c.process,
		"GET /processes/{name}/live":     c.processLive,
		"POST /processes/{name}/preview": c.processPreview,
		"POST /processes/{name}/decide":  c.processDecide,
		"GET /find":                      c.findForm,
		"POST /find":                     c.find,
		"GET /letters":                   c.letters,
		"POST /letters":                  c.findLetters,
		"POST /letters/preview":          c.lettersPreview,
		"POST /letters/decide":           c.lettersDecide,
		"GET /letters/{id}":              c.letter,
		"GET /audit":                     c.audit,
		"GET /doctor":                    c.doctor,
		"GET /login":                     c.login,
		"GET /assets/{file...}":          c.asset,
		"/":                              c.missing,
	} {
		c.mux.HandleFunc(pattern, serve)
	}
}

// ServeHTTP serves a page. The context of the request must have the visitor.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mux.ServeHTTP(w, r)
}

func (c *Console) address(name string) (string, error) {
	a, ok := c.assets[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return a.address, nil
}

func readAssets() map[string]asset {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all := map[string]asset{}
	err := fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		mime, served := types[path.Ext(name)]
		if err != nil || d.IsDir() || !served {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		digest := sha256.Sum256(content)
		short := strings.TrimPrefix(name, "assets/")
		all[short] = asset{content, mime, "/assets/" + short + "?" + hex.EncodeToString(digest[:6])}
		return nil
	})
	if err != nil {
		panic(err) // they are a part of the program
	}
	return all
}

// asset serves a file. Its address changes with its content, so a browser may keep it for good.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("file")]
	if !ok {
		c.missing(w, r)
		return
	}
	w.Header().Set("Content-Type", a.mime)
	w.Header().Set("Cache-Control", "no-cache")
	if _, digest, _ := strings.Cut(a.address, "?"); r.URL.RawQuery == digest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.content)
}

// show writes a page. It is made as a whole first, so that a fault in a template does not leave half of one.
func (c *Console) show(w http.ResponseWriter, status int, page string, view any) {
	var b bytes.Buffer
	if err := c.pages[page].ExecuteTemplate(&b, "layout", view); err != nil {
		c.log.Error("a page could not be made", "page", page, "err", err)
		http.Error(w, "the page could not be made; the log of the daemon has the reason", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func who(r *http.Request) visitor.Visitor { return visitor.Of(r.Context()) }

func sight(r *http.Request) desk.Sight {
	if who(r).Payloads {
		return desk.Full
	}
	return desk.Masked
}
