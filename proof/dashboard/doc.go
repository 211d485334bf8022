// Package dashboard holds the dashboard for Grafana against Grafana's own model.
//
// The types of github.com/grafana/grafana-foundation-sdk are generated from the schemas of Grafana: of the dashboard, of
// each kind of panel, and of a query of Prometheus. A key that they do not know, or a value that they refuse, is a
// fault. The queries themselves are read by promtool: see package metrics of the daemon.
//
// It leaves out how the dashboard looks. No Grafana is started: Debian has no package of it, and its licence (AGPL) is
// not one that this tree takes in as a module.
package dashboard
