package api

import (
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/web/internal/respond"
)

// checkQueries lets routes that read a query refuse parameters that are not in their description: a filter with a
// wrong name would select everything.
func checkQueries(routes map[string]respond.Route) {
	var doc struct {
		Paths map[string]struct {
			Get struct{ Parameters []struct{ Name, In string } }
		}
	}
	if err := yaml.Unmarshal(description, &doc); err != nil {
		panic("read the description of the API: " + err.Error()) // a part of the program
	}
	for path, of := range doc.Paths {
		var names []string
		for _, p := range of.Get.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		route := routes["GET "+path]
		if names == nil {
			continue
		}
		routes["GET "+path] = respond.For(route.Role, func(w http.ResponseWriter, r *http.Request) error {
			for name := range r.URL.Query() {
				if !slices.Contains(names, name) {
					return respond.BadQuery("%q is none of the parameters: %s.", name, strings.Join(names, ", "))
				}
			}
			return route.Handle(w, r)
		})
	}
}
