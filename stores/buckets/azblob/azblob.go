// Package azblob opens containers of Azure Blob Storage as object stores of the daemon.
package azblob

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets"
)

// Spec describes the kind to the daemon. The environment has the account (AZURE_STORAGE_ACCOUNT) and its credentials:
// AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_CONNECTION_STRING, or those of Azure's client.
func Spec() stores.Spec {
	return buckets.Kind{
		Scheme:     azureblob.Scheme,
		Example:    "azblob://container?storage_account=name",
		Parameters: []string{"storage_account", "domain", "protocol", "cdn", "localemu"},
		Opener: func(context.Context, *url.URL) (blob.BucketURLOpener, error) {
			return &azureblob.URLOpener{MakeClient: azureblob.NewDefaultClient, ServiceURLOptions: *azureblob.NewDefaultServiceURLOptions()}, nil
		},
	}.Spec()
}
