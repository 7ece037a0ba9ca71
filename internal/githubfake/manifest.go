package githubfake

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
)

// manifest is what GitHub reads of an App's manifest.
type manifest struct {
	Name     string            `json:"name"`
	URL      string            `json:"url"`
	Redirect string            `json:"redirect_url"`
	Hook     map[string]any    `json:"hook_attributes"`
	Grants   map[string]string `json:"default_permissions"`
	Events   []string          `json:"default_events"`
}

// manifestRoutes let a browser create an App of a manifest. Here the person confirms it at once.
func (s *Server) manifestRoutes() {
	for _, path := range []string{"POST /settings/apps/new", "POST /organizations/{org}/settings/apps/new"} {
		handle(&s.web, path, s.confirm)
	}
	handle(&s.rest, "POST /app-manifests/{code}/conversions", func(w http.ResponseWriter, r *request) { // without credentials
		s.mu.Lock()
		a := s.convert(r)
		s.mu.Unlock()
		a.write(w)
	})
}

func (s *Server) confirm(w http.ResponseWriter, r *request) {
	form, err := url.ParseQuery(string(r.body))
	var m manifest
	if err == nil {
		err = json.Unmarshal([]byte(form.Get("manifest")), &m)
	}
	to, uerr := url.Parse(m.Redirect)
	if err != nil || uerr != nil || m.Name == "" || m.URL == "" || m.Redirect == "" || m.Hook != nil && m.Hook["url"] == nil {
		http.Error(w, "Invalid GitHub App configuration", http.StatusUnprocessableEntity)
		return
	}
	code := rand.Text()
	s.mu.Lock()
	if s.manifests == nil {
		s.manifests = map[string]manifest{}
	}
	s.manifests[code] = m
	s.mu.Unlock()
	to.RawQuery = url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}}.Encode()
	http.Redirect(w, r.Request, to.String(), http.StatusFound)
}

func (s *Server) convert(r *request) reply {
	m, known := s.manifests[r.PathValue("code")]
	delete(s.manifests, r.PathValue("code")) // valid once
	if !known {
		return fail(404, "Not Found")
	}
	app := s.app()
	app["id"] = 4711
	app["name"], app["slug"], app["external_url"], app["permissions"] = m.Name, m.Name, m.URL, m.Grants
	app["html_url"] = s.url + "/apps/" + m.Name
	app["client_id"], app["client_secret"], app["pem"] = "Iv1.fake", "client-secret", "-----BEGIN RSA PRIVATE KEY-----\nfake\n-----END RSA PRIVATE KEY-----\n"
	app["webhook_secret"] = nil
	if app["events"] = []string{}; m.Hook != nil {
		app["webhook_secret"], app["events"] = "webhook-secret-of-the-app", m.Events
	}
	return created(app)
}
