package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

const (
	maxFiles      = 10
	maxFile       = 20 << 20        // bytes of one file
	downloadLimit = 2 * time.Minute // for all files together: the run waits for them
)

// onlyFiles is the request of a message that has files and no words.
const onlyFiles = "Look at the attached files."

// attachment is a file of a message.
type attachment struct {
	Name string `json:"name"`
	Type string `json:"mimetype"` // according to Slack
	Size int64  `json:"size"`
	URL  string `json:"url_private"`
}

// attachments are the files of a message. One that cannot be read is skipped.
type attachments []attachment

// UnmarshalJSON never fails.
func (a *attachments) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	_ = json.Unmarshal(b, &list)
	*a = nil
	for _, raw := range list {
		var f attachment
		if json.Unmarshal(raw, &f) == nil {
			*a = append(*a, f)
		}
	}
	return nil
}

// downloader downloads files of messages.
type downloader struct {
	http  *http.Client
	token string
	api   *url.URL
	limit time.Duration // for all files of a message
	log   *slog.Logger
}

// attachments downloads a message's files for the agent into the thread's directory for files and describes them, including those that could
// not be downloaded. Pictures that the model can look at are returned as well.
func (d *downloader) attachments(ctx context.Context, t tasks.Task, o origin, dir string) (about string, pictures []agent.File) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	var b strings.Builder
	b.WriteString("Attached files:\n")
	for i, f := range o.Files[:min(len(o.Files), maxFiles)] {
		name := render.Line(f.Name, 100)
		path := filepath.Join(dir, fmt.Sprintf("%s-%d-%s", o.TS, i+1, fileName(f.Name)))
		data, err := d.download(ctx, f)
		if err == nil {
			err = writeFile(path, data)
		}
		if err != nil {
			d.log.Warn("download file", "run", t.ID, "thread", t.Thread, "err", err)
			fmt.Fprintf(&b, "- %s could not be downloaded from Slack: %s\n", agent.QuoteName(name), reason(err))
			continue
		}
		fmt.Fprintf(&b, "- %s (%s, %s)\n", path, agent.QuoteName(name), http.DetectContentType(data))
		if kind := agent.PictureType(data); kind != "" && len(pictures) < agent.MaxPictures {
			pictures = append(pictures, agent.File{Name: name, Type: kind, Data: data})
		}
	}
	if n := len(o.Files) - maxFiles; n > 0 {
		fmt.Fprintf(&b, "- and %d more, which you do not get: at most %d are downloaded\n", n, maxFiles)
	}
	return strings.TrimSpace(b.String()), pictures
}

// unfetched is why a file cannot be downloaded, in words for the agent.
type unfetched string

func (u unfetched) Error() string { return string(u) }

const (
	tooLarge  = unfetched("it is larger than 20 MB")
	elsewhere = unfetched("it is not stored in Slack")
	noAccess  = unfetched("the app has no access to it and may lack the scope files:read")
)

func reason(err error) string {
	if u, ok := errors.AsType[unfetched](err); ok {
		return string(u)
	}
	return "Slack did not answer as expected"
}

// download downloads a file. The token goes only to Slack's own hosts, whatever URL an event has and wherever an answer redirects.
func (d *downloader) download(ctx context.Context, f attachment) ([]byte, error) {
	if f.Size > maxFile {
		return nil, tooLarge
	}
	if !d.isSlack(f.URL) {
		return nil, elsewhere
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	client := *d.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", err)
	}
	defer resp.Body.Close()
	// Slack answers requests without access by a page to log in, or by a redirect to it.
	page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.HasPrefix(f.Type, "text/html")
	switch {
	case resp.StatusCode/100 == 3, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized, page:
		return nil, noAccess
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("download file: %s", resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("download file: %w", err)
	case len(data) > maxFile:
		return nil, tooLarge
	}
	return data, nil
}

// isSlack reports whether a URL is of the host of Slack's API or below it.
func (d *downloader) isSlack(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != d.api.Scheme {
		return false
	}
	return u.Host == d.api.Host || strings.HasSuffix(u.Host, "."+d.api.Host)
}

// writeFile writes a file for the agent. An agent may have written to the directory before: os.Root does not follow links out of it.
func writeFile(path string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open directory for files: %w", err)
	}
	defer root.Close()
	name := filepath.Base(path)
	_ = root.Remove(name) // of an earlier attempt, and perhaps a link by now
	if err := root.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

var oddInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName turns a name into one that is safe in a path, with its extension.
func fileName(name string) string {
	name = strings.Trim(oddInName.ReplaceAllString(name, "_"), ".")
	if len(name) > 80 {
		name = name[len(name)-80:]
	}
	if name == "" {
		return "file"
	}
	return name
}
