package workspace

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Unknown is how commits name errand if nothing else is set. Runs commit under this name, too.
const Unknown = "errand <errand@localhost>"

// maxSigned bounds the commits that one push signs, because each is a call of git.
const maxSigned = 500

// signing re-creates the commits that are about to be published, with errand's signature. It works in a shadow, so
// nothing that an agent has configured takes part.
type signing struct {
	s      *shadow
	signer *Signer
	p      Publication
	date   string            // of the copies, as git writes it
	remote string            // the commits of the remote's refs, for rev-list
	copies map[string]string // commits that errand has signed and pushed, by what they are copies of
	now    map[string]string // the commits that are re-created, with their copies
}

// signing prepares the signing of work.
func (l load) signing(ctx context.Context, s *shadow, p Publication) (*signing, error) {
	g := &signing{s: s, signer: l.signer, p: p, copies: map[string]string{}, now: map[string]string{}}
	g.date = strconv.FormatInt(time.Now().Unix(), 10) + " +0000"
	if g.signer == nil {
		return g, nil
	}
	var err error
	g.remote, err = l.mirror.git.run(ctx, "for-each-ref", "--format=^%(objectname)", "refs/heads",
		"refs/tags", "refs/pull")
	if err != nil || l.branch == "" {
		return g, err
	}
	pushed, err := g.list(ctx, l.branch+"\n^"+l.base, "--max-count="+strconv.Itoa(maxSigned))
	if err != nil {
		return g, err
	}
	for _, c := range pushed {
		if c.signedBy(g.signer) {
			g.copies[c.key()] = c.name
		}
	}
	return g, nil
}

// sign returns the signed copy of a commit. Commits that the remote has, or that errand has signed, stay as they are.
func (g *signing) sign(ctx context.Context, tip string) (string, error) {
	if g.signer == nil {
		return tip, nil
	}
	own, err := g.list(ctx, tip+"\n"+g.remote)
	if err != nil {
		return "", err
	}
	for _, c := range own {
		moved := c.reparent(g.now)
		if !moved && c.signedBy(g.signer) {
			continue
		}
		if err := c.adopt(g.p, g.date); err != nil {
			return "", err
		}
		copied := g.copies[c.key()]
		if copied == "" {
			if copied, err = g.create(ctx, c); err != nil {
				return "", err
			}
		}
		g.now[c.name] = copied
	}
	return cmp.Or(g.now[tip], tip), nil
}

// create stores a commit with a signature.
func (g *signing) create(ctx context.Context, c *commitObject) (string, error) {
	signature, err := g.signer.sign(c.payload())
	if err != nil {
		return "", err
	}
	c.headers = append(c.headers, "gpgsig "+strings.ReplaceAll(signature, "\n", "\n "))
	out, err := g.s.git.reading(c.payload()).run(ctx, "hash-object", "-t", "commit", "-w", "--stdin")
	return strings.TrimSpace(out), err
}

// list returns the commits of a range, parents first.
func (g *signing) list(ctx context.Context, revisions string, args ...string) (list []*commitObject, err error) {
	names, err := g.s.git.reading(revisions).run(ctx,
		append([]string{"rev-list", "--topo-order", "--reverse", "--stdin"}, args...)...)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(names, "\n"); n > maxSigned {
		return nil, fmt.Errorf("%w: it has %d commits, and at most %d can be signed", ErrUnfit, n, maxSigned)
	}
	objects, err := g.s.git.objects(ctx, names)
	for _, o := range objects {
		list = append(list, parseCommit(o.name, o.content))
	}
	return list, err
}

// commitObject is a commit as git stores it.
type commitObject struct {
	name    string
	headers []string // with their continuation lines; signatures are in signature
	message string

	signature string // empty unless it is the only one
}

func parseCommit(name, text string) *commitObject {
	c := &commitObject{name: name}
	head, message, _ := strings.Cut(text, "\n\n")
	c.message = message
	var all []string
	for line := range strings.SplitSeq(head, "\n") {
		if more, found := strings.CutPrefix(line, " "); found && len(all) > 0 {
			all[len(all)-1] += "\n" + more
			continue
		}
		all = append(all, line)
	}
	signatures, foreign := 0, false
	for _, header := range all {
		switch key, value, _ := strings.Cut(header, " "); key {
		case "gpgsig":
			signatures++
			c.signature = strings.TrimSuffix(value, "\n")
		case "gpgsig-sha256":
			foreign = true // errand does not sign in this way
		default:
			c.headers = append(c.headers, strings.ReplaceAll(header, "\n", "\n "))
		}
	}
	if signatures != 1 || foreign {
		c.signature = "" // git would verify another one
	}
	return c
}

// payload is the content of the commit. Without a signature among the headers it is what is signed.
func (c *commitObject) payload() string { return strings.Join(c.headers, "\n") + "\n\n" + c.message }

func (c *commitObject) signedBy(s *Signer) bool {
	return c.signature != "" && s.made(c.signature, c.payload())
}

// reparent replaces the parents that were re-created, and reports whether there are any.
func (c *commitObject) reparent(now map[string]string) (moved bool) {
	for i, header := range c.headers {
		if parent, found := strings.CutPrefix(header, "parent "); found && now[parent] != "" {
			c.headers[i], moved = "parent "+now[parent], true
		}
	}
	return moved
}

var (
	identity = regexp.MustCompile(`^(?:author|committer) ([^\n]*>) [0-9]+ [+-][0-9]+$`)
	credited = regexp.MustCompile(`(?im)^Co-authored-by: .*\n?`)
)

// adopt reduces a commit to what errand can vouch for, because its signature confirms all of it. A run can write
// anything into a commit: a date of its choice, the tag of somebody else that it claims to have merged, headers that
// only other programs read. errand becomes the committer, and the author unless the asker is, at the given date. The
// other headers that stay are those of the content.
func (c *commitObject) adopt(p Publication, date string) error {
	found, encoded := 0, false
	var kept []string
	for _, header := range c.headers {
		switch key, _, _ := strings.Cut(header, " "); key {
		case "author", "committer":
			m := identity.FindStringSubmatch(header)
			if m == nil {
				continue
			}
			found++
			who := cmp.Or(p.Author, Unknown)
			if key == "author" && p.Asker != "" && m[1] == p.Asker {
				who = p.Asker
			}
			kept = append(kept, key+" "+who+" "+date)
		case "encoding":
			encoded = true
			kept = append(kept, header)
		case "tree", "parent":
			kept = append(kept, header)
		}
	}
	c.headers = kept
	if found != 2 {
		return fmt.Errorf("%w: commit %.7s has no author or no committer", ErrUnfit, c.name)
	}
	if p.Credit != nil && !encoded {
		c.message = p.Credit(c.message)
	}
	return nil
}

// key is equal for an adopted commit and its copies, whenever they were made and whoever is their author or co-author.
func (c *commitObject) key() string {
	var b strings.Builder
	for _, header := range c.headers {
		if !strings.HasPrefix(header, "author ") && !strings.HasPrefix(header, "committer ") {
			b.WriteString(header + "\n")
		}
	}
	return b.String() + "\n" + strings.TrimSpace(credited.ReplaceAllString(c.message, ""))
}
