package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
)

// What of a message's files is given to the agent.
const (
	maxFiles   = 10
	maxFile    = 20 << 20        // bytes of one
	fetchLimit = 2 * time.Minute // of all together: the run waits for them
)

// onlyFiles is what is asked by who sends nothing but files.
const onlyFiles = "Look at what I have sent along."

// attached is a file of a message, as events tell of it.
type attached struct {
	Name string `json:"name"`
	Type string `json:"mimetype"` // what Slack takes it for
	Size int64  `json:"size"`
	URL  string `json:"url_private"`
}

// attachments are the files of a message. One of an odd form costs itself alone.
type attachments []attached

// UnmarshalJSON never fails.
func (a *attachments) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	_ = json.Unmarshal(b, &list)
	*a = nil
	for _, raw := range list {
		var f attached
		if json.Unmarshal(raw, &f) == nil {
			*a = append(*a, f)
		}
	}
	return nil
}

// brought is what the message of a task brought along, beside what became of it in the task itself.
type brought struct {
	Files attachments        `json:"files,omitempty"`
	Pull  *forge.PullRequest `json:"pull,omitempty"` // the pull request that it names
	Anew  bool               `json:"anew,omitempty"` // it names a branch or a pull request, and the thread was somewhere else before
}

// address is the origin of a task with what its message brought along.
func (m message) address(b brought) json.RawMessage {
	origin, _ := json.Marshal(struct { // strings and numbers only: it cannot fail
		origin
		brought
	}{m.origin, b})
	return origin
}

func broughtBy(t tasks.Task) (b brought) {
	_ = json.Unmarshal(t.Origin, &b) // of another form: nothing
	return b
}

// fetchAll puts the files into the thread's directory for files and tells the agent of them, also of those that it does not get. Pictures that
// the model can look at are returned as well; all are files besides, for the agent may have to work with them.
func (s *Source) fetchAll(ctx context.Context, t tasks.Task, o origin, files attachments, dir string) (about string, pictures []agent.File) {
	ctx, cancel := context.WithTimeout(ctx, s.fetchLimit)
	defer cancel()
	var b strings.Builder
	b.WriteString("Files that were sent along with this:\n")
	for i, f := range files[:min(len(files), maxFiles)] {
		name := line(f.Name, 100)
		path := filepath.Join(dir, fmt.Sprintf("%s-%d-%s", o.TS, i+1, fileName(f.Name)))
		data, err := s.fetch(ctx, f)
		if err == nil {
			err = leave(path, data)
		}
		if err != nil {
			s.log.Warn("fetch file", "run", t.ID, "thread", t.Thread, "err", err)
			fmt.Fprintf(&b, "- %s could not be fetched from Slack: %s\n", agent.QuoteName(name), reason(err))
			continue
		}
		fmt.Fprintf(&b, "- %s (%s, %s)\n", path, agent.QuoteName(name), http.DetectContentType(data))
		if kind := agent.PictureType(data); kind != "" && len(pictures) < agent.MaxPictures {
			pictures = append(pictures, agent.File{Name: name, Type: kind, Data: data})
		}
	}
	if n := len(files) - maxFiles; n > 0 {
		fmt.Fprintf(&b, "- and %d more, which you do not get: at most %d are fetched\n", n, maxFiles)
	}
	return strings.TrimSpace(b.String()), pictures
}

// unfetched is why a file is not fetched, for the agent, which may have to tell who sent it.
type unfetched string

func (u unfetched) Error() string { return string(u) }

const (
	tooLarge  = unfetched("it is larger than 20 MB")
	elsewhere = unfetched("it is not kept in Slack")
	noAccess  = unfetched("Slack does not give it to the app, which may lack the scope files:read")
)

func reason(err error) string {
	if u, ok := errors.AsType[unfetched](err); ok {
		return string(u)
	}
	return "Slack did not answer as it should"
}

// fetch downloads a file. The token goes to Slack's own hosts alone, whatever an event says and wherever an answer leads.
func (s *Source) fetch(ctx context.Context, f attached) ([]byte, error) {
	if f.Size > maxFile {
		return nil, tooLarge
	}
	if !s.own(f.URL) {
		return nil, elsewhere
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch file: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+s.cfg.Token)
	client := *s.cfg.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch file: %w", err)
	}
	defer resp.Body.Close()
	// Who may not have it is sent to a page to log in, or given that page.
	page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.HasPrefix(f.Type, "text/html")
	switch {
	case resp.StatusCode/100 == 3, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized, page:
		return nil, noAccess
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch file: %s", resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetch file: %w", err)
	case len(data) > maxFile:
		return nil, tooLarge
	}
	return data, nil
}

// own reports whether an address is of Slack, as its API is.
func (s *Source) own(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return false
	}
	api, err := url.Parse(s.cfg.APIURL)
	if err != nil || u.Scheme != api.Scheme {
		return false
	}
	return u.Host == api.Host || strings.HasSuffix(u.Host, "."+api.Host)
}

// leave writes a file for the agent. An agent may have written there before: os.Root does not follow its links out.
func leave(path string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open directory for files: %w", err)
	}
	defer root.Close()
	name := filepath.Base(path)
	_ = root.Remove(name) // an earlier attempt's, perhaps by now a link
	if err := root.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

var oddInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName is a name as a file may have it here, with its extension.
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
