package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A host learns why the CLI asks the model again, as far as the CLI says.
func TestRetriesTellTheirClass(t *testing.T) {
	t.Parallel()
	h := &host{}
	retry := func(word string) string {
		return `{"type":"system","subtype":"api_retry","attempt":1,"error":"` + word + `"}`
	}
	newBench(t, "script").run(t, t.Context(), Spec{Prompt: script(retry("rate_limit"), retry("overloaded"),
		retry("server_error"), retry("news"), scripted)}, h)
	var got []Class
	for _, e := range seen(h) {
		if e.Kind == Notice {
			got = append(got, e.Class)
		}
	}
	if diff := cmp.Diff([]Class{ClassRateLimit, ClassOverloaded, ClassOverloaded, ""}, got); diff != "" {
		t.Error(diff)
	}
}
