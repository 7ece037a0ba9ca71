package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
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
func (c clone) fetchLFS(ctx context.Context, pointers []inLFS) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var lacking []inLFS
	for _, f := range pointers {
		if isPointer(root, f.name) {
			lacking = append(lacking, f)
		}
	}
	without, err := c.mirror.fetchLFS(ctx, lacking)
	if err != nil {
		return err
	}
	var there strings.Builder
	for _, f := range lacking {
		if c.why[f.name] = without[f.content]; c.why[f.name] == "" {
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

// hasLFS reports whether the mirror has a content. After a power failure its file may be shorter.
func (m mirror) hasLFS(o content) bool {
	info, err := os.Lstat(m.lfs(o.OID))
	return err == nil && info.Size() == o.Size
}

// fetchLFS fetches the contents of files into the mirror. It returns why it lacks others.
func (m mirror) fetchLFS(ctx context.Context, files []inLFS) (why map[content]string, _ error) {
	if !slices.ContainsFunc(files, func(f inLFS) bool { return !m.hasLFS(f.content) }) {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, lfsLimit)
	defer cancel()
	held, err := lock(limited, m.beside("lfs")) // not the mirror's own, which others need to fetch
	if err != nil && limited.Err() == nil {
		return nil, err
	}
	if err == nil { // otherwise nothing can be fetched any more, which download says
		defer unlock(held)
	}
	if err := os.MkdirAll(m.lfs(""), 0o700); err != nil {
		return nil, err
	}
	r, err := m.w.remote(ctx, m.repo)
	if err != nil {
		return nil, err
	}
	wanted, why := m.choose(files)
	for batch := range slices.Chunk(wanted, lfsBatch) {
		r.download(limited, m, batch, why)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return why, dirtree.Remove(m.beside("size")) // it has changed without a fetch
}

// choose returns the contents that the mirror lacks, the smallest first, and why it leaves out others.
func (m mirror) choose(files []inLFS) (wanted []content, why map[content]string) {
	why = map[content]string{}
	room := int64(maxLFSBytes)
	for _, f := range slices.SortedStableFunc(slices.Values(files), func(a, b inLFS) int {
		return cmp.Compare(a.Size, b.Size)
	}) {
		if _, known := why[f.content]; known || m.hasLFS(f.content) {
			continue
		}
		if why[f.content] = ""; len(wanted) == maxLFSFiles || f.Size > room {
			why[f.content] = fmt.Sprintf("errand fetches at most %d of them with %d MiB together", maxLFSFiles,
				maxLFSBytes>>20)
			continue
		}
		room -= f.Size
		wanted = append(wanted, f.content)
	}
	return wanted, why
}

// download fetches contents into the mirror, and says why it cannot fetch others.
func (r remote) download(ctx context.Context, m mirror, wanted []content, why map[content]string) {
	var last error
	at, err := r.batch(ctx, wanted)
	for _, o := range wanted {
		if at != nil {
			err = r.store(ctx, m, o, at[o.OID])
		}
		if why[o] = lfsReason(err); err != nil {
			last = err
		}
	}
	if last != nil {
		m.w.log.WarnContext(ctx, "files in Git LFS are left out", "dir", m.dir, "err", last)
	}
}

// lfsReason explains why a content is missing, as a clause for people.
func lfsReason(err error) string {
	said, known := errors.AsType[lfsError](err)
	_, disk := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil:
		return ""
	case known:
		return string(said)
	case errors.Is(err, context.DeadlineExceeded):
		return whyLate
	case disk:
		return "they cannot be stored"
	}
	return "its server cannot be reached"
}

// lfsError is what errand does not accept of a server, as a clause for people.
type lfsError string

func (e lfsError) Error() string { return string(e) }

// lfsObject is what a server says about a content.
type lfsObject struct {
	content

	Actions struct {
		Download *struct {
			Href   string
			Header map[string]string
		}
	}
	Error *struct{ Code int }
}

const lfsType = "application/vnd.git-lfs+json"

// batch asks the server where contents are. It returns what it says by their IDs.
func (r remote) batch(ctx context.Context, wanted []content) (map[string]lfsObject, error) {
	if !strings.HasPrefix(r.url, "http://") && !strings.HasPrefix(r.url, "https://") {
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
	resp, err := r.send(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct{ Objects []lfsObject }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 8<<20)).Decode(&answer); err != nil {
		return nil, lfsError("the answer of its server is not understood")
	}
	at := map[string]lfsObject{}
	for _, o := range answer.Objects {
		at[o.OID] = o
	}
	return at, nil
}

// store fetches one content into the mirror. Its address is another host's if the server says so, with what the server
// wants to be sent there.
func (r remote) store(ctx context.Context, m mirror, o content, at lfsObject) error {
	from := at.Actions.Download
	switch {
	case at.Error != nil:
		return lfsError(fmt.Sprintf("its server refuses them (%d)", at.Error.Code))
	case from == nil:
		return lfsError("its server does not answer for them")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.Href, http.NoBody)
	plain := err == nil && req.URL.Scheme != "https" // as the remote may be itself
	if err != nil || req.URL.Host == "" || plain && !strings.HasPrefix(r.url, req.URL.Scheme+"://") {
		return lfsError("its server names an address that errand does not use")
	}
	for name, value := range from.Header {
		req.Header.Set(name, value)
	}
	resp, err := r.send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return m.keepLFS(o, resp.Body)
}

// send sends a request, with the credential only to the remote itself, and follows redirects only on the same host.
func (r remote) send(req *http.Request) (*http.Response, error) {
	host := req.URL.Scheme + "://" + req.URL.Host + "/"
	if strings.HasPrefix(r.url, host) && req.Header.Get("Authorization") == "" && r.username+r.password != "" {
		req.SetBasicAuth(r.username, r.password)
	}
	client := http.Client{Transport: r.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if !strings.HasPrefix(next.URL.String(), host) || len(via) > 5 {
			return lfsError("its server redirects to another one")
		}
		return nil
	}}
	resp, err := client.Do(req) //nolint:gosec // the forge's server, or where that leads
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which may have secrets
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, lfsError("its server answers " + strconv.Itoa(resp.StatusCode))
	}
	return resp, nil
}

// keepLFS writes a content, if it is what its ID says. The caller holds the lock.
func (m mirror) keepLFS(o content, from io.Reader) (err error) {
	tmp := m.lfs("tmp") // a killed process leaves it to the next one
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(from, o.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if n != o.Size || fmt.Sprintf("%x", sum.Sum(nil)) != o.OID {
		return errors.Join(lfsError("its server has other contents than the pointers say"), os.Remove(tmp))
	}
	return os.Rename(tmp, m.lfs(o.OID))
}

// withoutLFS returns the changes without files that have the contents to which their pointers in the index lead: git
// takes them for changed, because it executes no filter here. It marks those that have others. Attributes, which an
// agent can change, do not matter.
func (s *shadow) withoutLFS(ctx context.Context, changed []change) (kept []change, err error) {
	at := map[string]int{}
	inLines := true // git reads the names of objects in lines
	var files []treeFile
	for i, f := range changed {
		if f.size >= 0 && !f.odd && !f.added && !isLink(s.files, f.name) {
			at[f.name] = i
			inLines = inLines && !strings.Contains(f.name, "\n")
			files = append(files, treeFile{name: f.name, object: ":0:" + f.name})
		}
	}
	if !inLines {
		if files, _, err = tracked(ctx, s.git); err != nil {
			return nil, err
		}
		files = slices.DeleteFunc(files, func(f treeFile) bool { _, found := at[f.name]; return !found })
	}
	pointers, _, err := s.git.readPointers(ctx, files)
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
	file, info, err := openFile(s.files, f.name)
	if err != nil {
		return false, nil // gone, or something else by now
	}
	defer file.Close()
	if info.Size() != f.Size {
		return false, nil
	}
	sum := sha256.New()
	for left := f.Size; left > 0 && ctx.Err() == nil; left -= 1 << 20 {
		if _, err := io.CopyN(sum, file, min(left, 1<<20)); err != nil {
			return false, nil // it has just become shorter
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)) == f.OID, context.Cause(ctx)
}

// fitLFS refuses files whose contents belong on the server of Git LFS, where errand writes nothing. What the repository
// has whole stays so.
func (s *shadow) fitLFS(ctx context.Context, changed []change) error {
	var names strings.Builder
	for _, f := range changed {
		if f.lfs {
			return belongsToLFS(f.name)
		}
		if f.added && f.size > 0 { // an empty file is its own pointer
			names.WriteString(f.name + "\x00")
		}
	}
	left, err := s.inTree().leftToLFS(ctx, names.String())
	for _, name := range left {
		if !isPointer(s.files, name) {
			return belongsToLFS(name)
		}
	}
	return err
}

func belongsToLFS(name string) error {
	return fmt.Errorf("%w: %q belongs to Git LFS (.gitattributes), where errand writes nothing; leave it out",
		ErrUnfit, name)
}
