package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// asApp makes errand an App whose tokens are due for renewal as soon as they are issued.
func (w *world) asApp() {
	w.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.Fatal(err)
	}
	w.github, err = githubfake.New(githubfake.Config{
		AppID: 77, AppKey: &key.PublicKey, InstallationID: 5, TokenLife: 30 * time.Second, WebhookSecret: githubSecret,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(w.github.Close)
	if _, err := w.github.CreateRepo("acme", "payments", map[string]string{"total.go": "package total\n"}); err != nil {
		w.Fatal(err)
	}
	file := filepath.Join(w.TempDir(), "app.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		w.Fatal(err)
	}
	delete(w.env, "GITHUB_TOKEN")
	w.env["GITHUB_API_URL"], w.env["GITHUB_URL"] = w.github.APIURL(), w.github.URL()
	w.env["GITHUB_APP_ID"], w.env["GITHUB_APP_PRIVATE_KEY"] = "77", file
}

// An installation token lives for an hour, a run for two. The token of the fetch is invalid when the work is pushed.
func TestRunOutlivesItsTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asApp()
	wait, open := w.gate()
	w.model.Answer("mend the total",
		modelfake.Turn{Tools: []modelfake.ToolCall{wait}},
		bash("echo '// cents' >> total.go && git commit -qam 'Count in cents'"),
		modelfake.Turn{Text: "It counts cents."})
	w.standalone()
	root := w.mention("mend the total", "")
	w.saying(root, "Working: running")
	w.github.ExpireTokens()
	open()
	if final := w.answers(root, 1)[0]; !strings.Contains(final, w.github.URL()+"/"+repo+"/pull/1") {
		t.Errorf("final message: %s", final)
	}
	if pulls := w.github.Pulls(repo); len(pulls) != 1 || pulls[0].Title != "Count in cents" {
		t.Errorf("pull requests: %+v", pulls)
	}
}
