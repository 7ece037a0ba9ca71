package main

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/internal/modelfake"
)

// The check asks the model as a run would, and says what is wrong in the provider's words.
func TestCheckModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn modelfake.Turn
		env  map[string]string
		code int
		says string
	}{
		"answers":  {modelfake.Turn{Text: "OK"}, nil, 0, "ok: claude-"},
		"refused":  {modelfake.Turn{Status: http.StatusForbidden, Message: "This organization has been disabled."}, nil, 1, "This organization has been disabled."},
		"no model": {modelfake.Turn{Status: http.StatusNotFound, Message: "model: claude-opus-5-5"}, nil, 1, "Set ERRAND_MODEL to a model of the account"},
		"no CLI":   {modelfake.Turn{}, map[string]string{"ERRAND_CLAUDE": "/nowhere/claude"}, 1, "set ERRAND_CLAUDE"},
		"setting":  {modelfake.Turn{}, map[string]string{"ERRAND_GATEWAY": "no"}, 1, "ERRAND_GATEWAY must be on or off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.Answer("", c.turn)
			maps.Copy(w.env, c.env)
			var out strings.Builder
			code := run(t.Context(), invocation{[]string{"check-model"}, w.getenv, &out, &out}, wire.Options{})
			if code != c.code || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d: %s", code, out.String())
			}
		})
	}
}
