package githubfake_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// A request that GitHub's description does not allow is refused, and recorded as a breach: a field of the wrong type,
// a missing one, one that does not exist, and a query that does not exist.
func TestContract(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	for name, tc := range map[string]struct {
		method, path, body, want string
	}{
		"wrong type":    {"POST", "issues/1/comments", `{"body": 7}`, "/body: 7 is not of type string"},
		"missing":       {"POST", "issues/1/comments", `{}`, "/body: missing"},
		"unknown":       {"POST", "issues/1/comments", `{"body": "x", "to": "ann"}`, "/to: no such field"},
		"enum":          {"POST", "issues/1/reactions", `{"content": "shrug"}`, `/content: "shrug" is none of`},
		"no body":       {"POST", "issues/1/comments", ``, "null is not of type object"},
		"unasked body":  {"GET", "pulls/1", `{"a": 1}`, "GitHub takes no body"},
		"unknown query": {"GET", "pulls?colour=red", ``, "/colour: no such field"},
		"query's type":  {"GET", "pulls?per_page=many", ``, `/per_page: "many" is not of type integer`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, s.APIURL()+"repos/acme/api/"+tc.path,
			strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer ghp_test")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		all := s.Breaches()
		if resp.StatusCode != http.StatusUnprocessableEntity || len(all) != 1 || !strings.Contains(all[0], tc.want) {
			t.Errorf("%s: %d %s, breaches %q, want %q", name, resp.StatusCode, said, all, tc.want)
		}
	}
	s.Close() // must not panic: the breaches were taken
}

// A breach that nobody has looked at ends the test that made it.
func TestContractIsNotOverlooked(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.APIURL()+"repos/acme/api/pulls?colour=red", http.NoBody)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "/colour: no such field") {
			t.Errorf("Close panicked with %q", said)
		}
	}()
	s.Close()
}

// Each schema of a body and of an answer refuses another kind of value, and each one with required fields an object
// without them.
func TestSchemasBite(t *testing.T) {
	t.Parallel()
	c := githubfake.Contract()
	n := 0
	for _, name := range slices.Sorted(maps.Keys(c.Variants[0].Schemas)) {
		if c.Variants[0].Schemas[name] == true {
			continue // GitHub describes no content
		}
		text, _ := json.Marshal(c.Variants[0].Schemas[name])
		if err := c.Check(name, "text", true); err == nil && !bytes.Contains(text, []byte(`"string"`)) {
			t.Errorf("%s: a text is allowed", name)
		}
		if bytes.Contains(text, []byte(`"required"`)) && !bytes.HasPrefix(text, []byte(`{"anyOf"`)) {
			if err := c.Check(name, map[string]any{"surprise": true}, true); err == nil &&
				!strings.HasSuffix(name, " query") {
				t.Errorf("%s: an object without the required fields is allowed", name)
			}
		}
		n++
	}
	if n < 100 {
		t.Errorf("%d schemas", n)
	}
}
