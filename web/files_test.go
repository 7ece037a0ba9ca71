package web

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// A task's page has the files that the agent has attached. Only pictures are shown by a browser, whatever their names
// are, and all else is downloaded.
func TestAttachedFiles(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "!Files")

	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	const script = "<script>alert(1)</script>"
	files := map[string]string{"after 50%?.png": dot.String(), "not.png": script, `"report".html`: script}
	for name, data := range files {
		if err := c.SaveLatest(t.Context(), tasks.FileLogs+name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	path := "/tasks/" + id + "/files/"
	h.contains(h.get("/tasks/"+id), http.StatusOK, "<h2>Files</h2>", `<img src="`+path+`after%2050%25%3F.png"`,
		`<a href="`+path+`%22report%22.html">&#34;report&#34;.html</a>`)
	for name, data := range files {
		a := h.get(path + url.PathEscape(name))
		kind, disposition := a.Header.Get("Content-Type"), a.Header.Get("Content-Disposition")
		picture := kind == "image/png" && disposition == ""
		download := kind == "application/octet-stream" && strings.HasPrefix(disposition, "attachment; filename=")
		if a.StatusCode != http.StatusOK || a.text != data || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			picture != (data == dot.String()) || download == picture {
			t.Errorf("%s: %s %s", name, a.Status, a.Header)
		}
	}
	h.contains(h.get(path+"other.png", "Accept", "text/html"), http.StatusNotFound, "No file of this name")
}
