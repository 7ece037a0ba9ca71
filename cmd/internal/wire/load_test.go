package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
)

// A key that only looks like one stops the start, so Load refuses it.
func TestLoadTriesTheParts(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(key, []byte("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ANTHROPIC_API_KEY": "k", "ERRAND_STATE_DIR": t.TempDir(), "GITHUB_APP_ID": "1", "GITHUB_APP_PRIVATE_KEY_FILE": key, "GITHUB_WEBHOOK_SECRET": "s",
	}
	_, err := Load(func(name string) string { return env[name] }, config.RoleStandalone)
	if err == nil || !strings.Contains(err.Error(), "read the App's key") {
		t.Errorf("it says %v", err)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	list := Notices(c, []string{"ERRAND_RUN_LIMT=1h"})
	if len(list) != 2 || list[0].Severity != store.Note || list[0].What != c.Summary() || list[1].Severity != store.Warning ||
		!strings.Contains(list[1].Remedy, "ERRAND_RUN_LIMIT") {
		t.Errorf("got %+v", list)
	}
	c.Paths.File, c.Routing.Budgets.Day = "errand.yaml", 200
	if list := Notices(c, nil); len(list) != 1 || list[0].Severity != "" || list[0].What != "errand.yaml: $200/day" {
		t.Errorf("got %+v", list)
	}
}
