package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// ERRAND_GATEWAY decides whether runs reach the model through the worker. The model sees the credential either way.
func TestGatewaySetting(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]bool{"": true, "off": false} {
		t.Run("set to "+setting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env["ERRAND_GATEWAY"] = setting
			w.model.Answer("", modelfake.Turn{Text: "Answered."})
			if body := w.chat(t.Context(), w.standalone(), `{"message":"x"}`); !strings.Contains(body, "Answered.") {
				t.Fatalf("chat:\n%s", body)
			}
			asked := w.model.Requests()[0]
			through := asked.Header.Get("Accept-Encoding") == "identity" // sent by the gateway, not by the CLI
			if asked.Key != modelKey || through != want {
				t.Errorf("the model was asked with key %q, through a gateway: %v", asked.Key, through)
			}
		})
	}
}

// A token that a command prints, and headers, reach the model, and the run has neither.
func TestModelTokenCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("model-token-of-a-command\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["ERRAND_MODEL_TOKEN_COMMAND"], w.env["ANTHROPIC_CUSTOM_HEADERS"] = "cat "+
		file, `X-Team: team-header-4711\nX-Other: b`
	w.model.Answer("",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name:  "Bash",
			Input: map[string]string{"command": "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"},
		}}},
		modelfake.Turn{Text: "Answered."})
	base := w.standalone()
	if body := w.chat(t.Context(), base, `{"message":"x","profile":"write"}`); !strings.Contains(body, "Answered.") {
		t.Fatalf("chat:\n%s", body)
	}
	for _, asked := range w.model.Requests() {
		if asked.Key != "model-token-of-a-command" || asked.Header.Get("X-Team") != "team-header-4711" ||
			asked.Header.Get("X-Other") != "b" {
			t.Errorf("the model was asked with %v", asked.Header)
		}
		for _, secret := range []string{"model-token-of-a-command", "team-header-4711"} {
			if strings.Contains(string(asked.Body), secret) {
				t.Errorf("the run has seen %s", secret)
			}
		}
	}
	w.secretsStayInside()
}
