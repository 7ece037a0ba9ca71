package githubfake

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
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
	// the person installs it at once
	handle(&s.web, "GET /apps/{app}/installations/new", func(w http.ResponseWriter, r *request) {
		s.mu.Lock()
		s.uninstalled = false
		s.mu.Unlock()
		fmt.Fprintf(w, "%s is installed.", r.PathValue("app"))
	})
	// without credentials
	handle(&s.rest, "POST /app-manifests/{code}/conversions", func(w http.ResponseWriter, r *request) {
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
	if err != nil || uerr != nil || m.Name == "" || m.URL == "" || m.Redirect == "" ||
		m.Hook != nil && m.Hook["url"] == nil {
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
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fail(500, err.Error())
	}
	s.cfg.AppID, s.cfg.AppKey, s.cfg.BotLogin, s.cfg.Permissions, s.uninstalled =
		4711, &key.PublicKey, m.Name, m.Grants, true
	app := s.app()
	app["external_url"], app["client_id"], app["client_secret"] = m.URL, "Iv1.fake", "client-secret"
	app["pem"] = string(pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
	}))
	app["webhook_secret"] = nil
	if app["events"] = []string{}; m.Hook != nil {
		app["webhook_secret"], app["events"] = "webhook-secret-of-the-app", m.Events
	}
	return created(app)
}
