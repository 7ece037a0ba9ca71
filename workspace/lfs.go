package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Git LFS keeps a file on a server and has a pointer to it in git. The host fetches the contents of what it checks out
// into the mirror, where no agent can write, and puts them in place of the pointers. The agent's own git turns them
// into pointers again, with a filter of a few lines of shell, so that they are unchanged for it. The host's git
// executes no filter in a clone: see withoutLFS.

// Bounds of what is fetched for one clone.
const (
	maxLFSFiles = 1000
	maxLFSBytes = 1 << 30
	lfsLimit    = 10 * time.Minute
	lfsBatch    = 100 // objects in a request; GitHub's server takes as many
)

// fetchLFS replaces pointers in the work tree of a new clone by their contents, and notes why others stay.
func (c clone) fetchLFS(ctx context.Context) error {
	if uses, err := c.usesLFS(ctx); !uses { // the list of files is long
		return err
	}
	files, _, err := tracked(ctx, c.git)
	if err != nil {
		return err
	}
	all, err := c.pointers(ctx, files)
	if err != nil || len(all) == 0 {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	all = slices.DeleteFunc(all, func(f inLFS) bool { return !isPointer(root, f.name) })
	without, err := c.mirror.fetchLFS(ctx, all)
	if err != nil {
		return err
	}
	var there strings.Builder
	for _, f := range all {
		if c.why[f.name] = without[f.oid]; c.why[f.name] == "" {
			there.WriteString(f.name + "\x00")
			if err := root.Remove(f.name); err != nil { // or git leaves it, as it is what the index has
				return err
			}
		}
	}
	if there.Len() == 0 {
		return nil
	}
	smudge := "filter.lfs.smudge=cat " + inShell(c.mirror.lfs("")) + "/$(sed -n 's/^oid sha256://p')"
	_, err = c.git.configured(smudge).reading(there.String()).run(ctx,
		"checkout-index", "--force", "--index", "-z", "--stdin")
	return err
}

// lfsFilter returns the configuration by which the agent's git turns contents into pointers, and pointers into what the
// mirror has. What the repository has whole stays whole.
func (m mirror) lfsFilter() string {
	const (
		begin  = `t=$(mktemp) || exit; trap 'rm -f "$t"' EXIT; cat >"$t"; `
		header = "version https://git-lfs.github.com/spec/v1"
		is     = `is() { [ "$(head -n 1 | head -c 100 | tr -d '\0')" = '` + header + `' ]; }; `
		clean  = begin + is +
			`if ! [ -s "$t" ] || is <"$t" || ` +
			`{ b=$(git rev-parse -q --verify :%f) && ! git cat-file blob "$b" | is; }; ` +
			`then cat "$t"; else printf '` + header + `\noid sha256:%%s\nsize %%s\n' ` +
			`"$(sha256sum <"$t" | cut -c -64)" "$(wc -c <"$t" | tr -d ' ')"; fi`
		smudge = begin + `o=; [ "$(wc -c <"$t")" -ge 1024 ] || o=$(sed -n 's/^oid sha256:\([0-9a-f]*\)$/\1/p' "$t"); ` +
			`if [ -n "$o" ] && [ -f $lfs/"$o" ]; then cat $lfs/"$o"; else cat "$t"; fi`
	)
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	there := strings.ReplaceAll(smudge, "$lfs", inShell(m.lfs("")))
	return "[filter \"lfs\"]\n\tclean = \"" + quote(clean) + "\"\n" +
		"\tsmudge = \"" + quote(there) + "\"\n\trequired = true\n"
}

// inShell quotes a word for sh.
func inShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lfs returns the file of an object of Git LFS.
func (m mirror) lfs(oid string) string { return filepath.Join(m.dir, "lfs", oid) }

// fetchLFS fetches the contents of files into the mirror. It returns why it lacks others, by object.
func (m mirror) fetchLFS(ctx context.Context, files []inLFS) (why map[string]string, _ error) {
	held, err := lock(ctx, m.beside("lfs")) // not the mirror's own, which others need to fetch
	if err != nil {
		return nil, err
	}
	defer unlock(held)
	why = map[string]string{}
	var wanted []lfsObject
	room := int64(maxLFSBytes)
	sorted := slices.SortedStableFunc(slices.Values(files), func(a, b inLFS) int { return int(a.size - b.size) })
	for _, f := range sorted {
		if _, known := why[f.oid]; known || exists(m.lfs(f.oid)) {
			continue
		}
		if why[f.oid] = ""; len(wanted) == maxLFSFiles || f.size > room {
			why[f.oid] = fmt.Sprintf("errand fetches at most %d of them with %d MiB together", maxLFSFiles,
				maxLFSBytes>>20)
			continue
		}
		room -= f.size
		wanted = append(wanted, lfsObject{OID: f.oid, Size: f.size})
	}
	if len(wanted) == 0 {
		return why, nil
	}
	if err := os.MkdirAll(m.lfs(""), 0o700); err != nil {
		return nil, err
	}
	r, err := m.w.remote(ctx, m.repo)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lfsLimit)
	defer cancel()
	for batch := range slices.Chunk(wanted, lfsBatch) {
		r.download(limited, m, batch, why)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return why, nil
}

// lfsObject is an object in a request to a server for Git LFS, and in its answer.
type lfsObject struct {
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	Actions struct {
		Download *lfsAction `json:"download,omitempty"`
	} `json:"actions,omitzero"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error,omitempty"`
}

type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// download fetches objects into the mirror, and says why it cannot fetch others.
func (r remote) download(ctx context.Context, m mirror, wanted []lfsObject, why map[string]string) {
	answer, err := r.batch(ctx, wanted)
	for _, o := range wanted {
		why[o.OID] = "its server does not answer for them"
		if err != nil {
			why[o.OID] = lfsReason(err)
		}
	}
	for _, o := range answer {
		i := slices.IndexFunc(wanted, func(w lfsObject) bool { return w.OID == o.OID })
		switch {
		case i < 0: // not asked for
		case o.Error != nil:
			why[o.OID] = fmt.Sprintf("its server refuses them (%d)", o.Error.Code)
		case o.Actions.Download == nil:
		default:
			why[o.OID] = ""
			if err := r.store(ctx, m, wanted[i], *o.Actions.Download); err != nil {
				why[o.OID] = lfsReason(err)
			}
		}
	}
}

// lfsReason returns why an object is missing, as a clause for people and without addresses, which may hold secrets.
func lfsReason(err error) string {
	if said, ok := errors.AsType[lfsError](err); ok {
		return string(said)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "they did not arrive within " + lfsLimit.String()
	}
	return "its server cannot be reached"
}

// lfsError is what errand does not accept of a server, as a clause for people.
type lfsError string

func (e lfsError) Error() string { return string(e) }

// answered returns the error of an answer other than 200.
func answered(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return lfsError("its server answers " + strconv.Itoa(resp.StatusCode))
}

const lfsType = "application/vnd.git-lfs+json"

// batch asks the server where objects are.
func (r remote) batch(ctx context.Context, wanted []lfsObject) ([]lfsObject, error) {
	u, err := url.Parse(r.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, lfsError("the repository has no server for it")
	}
	body, err := json.Marshal(map[string]any{
		"operation": "download", "transfers": []string{"basic"}, "hash_algo": "sha256", "objects": wanted,
	})
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(strings.TrimSuffix(r.url, "/"), ".git") + ".git/info/lfs/objects/batch"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	r.authorize(req)
	client := http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a moved repository has another name
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := answered(resp); err != nil {
		return nil, err
	}
	var answer struct {
		Objects []lfsObject `json:"objects"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 8<<20)).Decode(&answer); err != nil {
		return nil, lfsError("the answer of its server is not understood")
	}
	return answer.Objects, nil
}

// authorize adds the credential, if there is one.
func (r remote) authorize(req *http.Request) {
	if r.username+r.password != "" {
		req.Header.Set("Authorization", basic(r.username, r.password))
	}
}

// store fetches one object into the mirror. Its address is another host's if the server says so, with what the server
// wants to be sent there. The credential goes only to the remote itself, and redirects only where the object is.
func (r remote) store(ctx context.Context, m mirror, o lfsObject, from lfsAction) error {
	home, err := url.Parse(r.url)
	if err != nil {
		return err
	}
	at, err := url.Parse(from.Href)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != home.Scheme {
		return lfsError("its server names an address that errand does not use")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.Href, http.NoBody)
	if err != nil {
		return err
	}
	for name, value := range from.Header {
		req.Header.Set(name, value)
	}
	if at.Scheme == home.Scheme && at.Host == home.Host && req.Header.Get("Authorization") == "" {
		r.authorize(req)
	}
	client := http.Client{Transport: r.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Scheme != at.Scheme || next.URL.Host != at.Host || len(via) > 5 {
			return lfsError("its server redirects to another one")
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := answered(resp); err != nil {
		return err
	}
	return m.keepLFS(o, resp.Body)
}

// keepLFS writes an object that is what its ID says. The caller holds the lock.
func (m mirror) keepLFS(o lfsObject, content io.Reader) (err error) {
	tmp := m.lfs("tmp") // a killed process leaves it to the next one
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, o.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if n != o.Size || fmt.Sprintf("%x", sum.Sum(nil)) != o.OID {
		return errors.Join(lfsError("its server has other contents than the pointers say"), os.Remove(tmp))
	}
	return os.Rename(tmp, m.lfs(o.OID))
}

// withoutLFS returns the changes without files that have the contents to which their pointers in the index lead: git
// takes them for changed, because it executes no filter here. It marks those that have others.
func (s *shadow) withoutLFS(ctx context.Context, changed []change) (kept []change, _ error) {
	at := map[string]int{}
	for i, f := range changed {
		if f.size >= 0 && !f.odd {
			at[f.name] = i
		}
	}
	if len(at) == 0 {
		return changed, nil
	}
	files, _, err := tracked(ctx, s.git)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f treeFile) bool { _, found := at[f.name]; return !found })
	pointers, err := s.git.readPointers(ctx, files)
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for _, f := range pointers {
		same[f.name], err = s.has(ctx, f)
		if err != nil {
			return nil, err
		}
		changed[at[f.name]].lfs = !isPointer(s.files, f.name)
	}
	return slices.DeleteFunc(changed, func(f change) bool { return same[f.name] }), nil
}

// has reports whether a file of the work tree has the contents to which its pointer leads.
func (s *shadow) has(ctx context.Context, f inLFS) (bool, error) {
	file, size, err := openFile(s.files, f.name)
	if err != nil || size != f.size {
		return false, nil // gone, or something else by now
	}
	defer file.Close()
	sum := sha256.New()
	for left := size; left > 0 && ctx.Err() == nil; left -= 1 << 20 {
		if _, err := io.CopyN(sum, file, min(left, 1<<20)); err != nil {
			return false, nil // it has just become shorter
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)) == f.oid, context.Cause(ctx)
}

// fitLFS refuses files whose contents belong on the server of Git LFS, where errand writes nothing.
func (s *shadow) fitLFS(ctx context.Context, changed []change) error {
	var names strings.Builder
	for _, f := range changed {
		if f.lfs {
			return belongsToLFS(f.name)
		}
		if f.size > 0 { // an empty file is its own pointer
			names.WriteString(f.name + "\x00")
		}
	}
	g := s.git
	g.tree = s.files.Name()
	left, err := g.leftToLFS(ctx, names.String())
	if err != nil || len(left) == 0 {
		return err
	}
	files, _, err := tracked(ctx, s.git)
	for _, name := range left { // what the repository has whole stays so
		if !slices.ContainsFunc(files, func(f treeFile) bool { return f.name == name }) && !isPointer(s.files, name) {
			return belongsToLFS(name)
		}
	}
	return err
}

func belongsToLFS(name string) error {
	return fmt.Errorf("%w: %q belongs to Git LFS (.gitattributes), where errand writes nothing; leave it out",
		ErrUnfit, name)
}

// knownLFS refuses commits with pointers whose contents the server lacks: whoever clones them would get nothing.
func (s *shadow) knownLFS(ctx context.Context, tip string) error {
	out, err := s.git.run(ctx, "rev-list", "--objects", tip, "--not", "--alternate-refs")
	if err != nil {
		return err
	}
	var files []treeFile
	for line := range strings.Lines(out) { // "<object> <name>"; a commit has no name
		if object, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " "); found && name != "" {
			files = append(files, treeFile{name: name, object: object})
		}
	}
	pointers, err := s.git.readPointers(ctx, files)
	for _, f := range pointers {
		if exists(s.clone.mirror.lfs(f.oid)) {
			continue
		}
		left, err := s.git.leftToLFS(ctx, f.name+"\x00", "--cached")
		if err != nil || len(left) > 0 {
			return errors.Join(err, belongsToLFS(f.name))
		}
	}
	return err
}
