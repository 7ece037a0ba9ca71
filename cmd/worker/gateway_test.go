package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/modelfake"
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
			if asked.Key != "sk-ant-end-to-end" || through != want {
				t.Errorf("the model was asked with key %q, through a gateway: %v", asked.Key, through)
			}
		})
	}
}
