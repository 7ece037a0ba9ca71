package console

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// attached is a file that the agent has attached to a task.
type attached struct {
	Name    string
	URL     string
	Picture bool // by its name; its page tells by its content
}

// attachedFiles returns the files of a task. Its page is shown without those that cannot be read.
func (c *Console) attachedFiles(ctx context.Context, s tasks.Status) (list []attached) {
	names, err := c.View.Desk.Files(ctx, s.Task.ID)
	if err != nil {
		c.View.Log.Warn("list files", "run", s.Task.ID, "err", err)
	}
	for _, name := range names {
		to := url.URL{Path: "/tasks/" + s.Task.ID + "/files/" + name}
		list = append(list, attached{
			Name: display.Line(name), URL: to.String(),
			Picture: slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif"}, filepath.Ext(name)),
		})
	}
	return list
}

// attachedFile sends a file. A browser shows only pictures of the formats that have no scripts: an agent may have
// written anything.
func (c *Console) attachedFile(w http.ResponseWriter, r *http.Request) error {
	s, err := c.View.Task(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	data, err := c.View.Desk.File(r.Context(), s.Task.ID, name)
	if errors.Is(err, tasks.ErrNotFound) {
		return respond.Error(http.StatusNotFound, "No such file",
			"No file of this name is attached to the task, or it has expired.")
	}
	if err != nil {
		return err
	}
	kind := agent.PictureType(data)
	if kind == "" {
		kind = "application/octet-stream"
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return nil
}
