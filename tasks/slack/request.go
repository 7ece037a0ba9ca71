package slack

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// request is what a message asks for, as far as its words say.
type request struct {
	prompt  string
	repo    string // "owner/name", a name alone, none, or empty: it does not say
	ref     string
	options tasks.Options
	pull    pull     // the pull request it is about; zero: none
	verb    verb     // what is to be done with it
	perhaps string   // a word that may be the name of a repository: "in detail" is none
	several []string // repositories it names without saying which one it is about
}

// pull is a pull request as it was named.
type pull struct {
	repo   string
	number int
	sure   bool // an address says so; o/r#12 may be an issue
}

// reader reads requests. It knows the address of our GitHub.
type reader struct{ address *regexp.Regexp }

// What addresses and names on GitHub look like. Its own pages have addresses of the form owner/name as well.
const (
	ownerForm = `[A-Za-z0-9][A-Za-z0-9-]{0,38}`
	nameForm  = `[A-Za-z0-9._-]{1,100}`
)

var (
	fullForm = regexp.MustCompile(`^` + ownerForm + `/` + nameForm + `$`)
	numbered = regexp.MustCompile(`(?:^|[^\w./#-])(` + ownerForm + `/` + nameForm + `)#([1-9][0-9]{0,8})\b`)
	repoWord = regexp.MustCompile(`(?:^|\s)repo=(\S+)`)
	pages    = []string{"orgs", "settings", "marketplace", "sponsors", "topics", "features", "apps", "users", "login", "search", "enterprise"}
)

// newReader makes a reader for requests about a GitHub at that address, like https://github.com. Slack leaves the scheme out where people
// do.
func newReader(github string) reader {
	u, err := url.Parse(github)
	if err != nil || u.Host == "" {
		return reader{}
	}
	at := regexp.QuoteMeta(u.Host + strings.TrimRight(u.Path, "/"))
	return reader{regexp.MustCompile(`(?i)(?:^|[^\w.@/-])(?:https?://)?(?:www\.)?` + at + `/(` + ownerForm + `)/(` + nameForm + `)(/[^\s<>|)"'` + "`" + `]*)?`)}
}

// read reads a message, which is Markdown without mentions of us. An *tasks.InputError says what is wrong with its options.
func (rd reader) read(text string) (request, error) {
	options, rest := cutOptions(text)
	r := request{prompt: rest}
	for _, o := range options {
		if err := r.set(o); err != nil {
			return r, err
		}
	}
	if err := rd.where(&r); err != nil {
		return r, err
	}
	r.command()
	return r, nil
}

// where finds the place that a message names: by an option, by the word repo=, by addresses and numbers. Of these the first kind that
// occurs counts.
func (rd reader) where(r *request) error {
	if r.repo == "" && strings.Contains(r.prompt, "repo=") { // few messages
		if m := repoWord.FindStringSubmatch(r.prompt); m != nil {
			r.repo = strings.TrimRight(m[1], ".,;:!?")
		}
	}
	if r.repo != "" {
		named := rd.named(r.repo)
		if len(named) > 0 {
			r.at(named[0])
		}
		if r.repo != none && !fullForm.MatchString(r.repo) && strings.Contains(r.repo, "/") {
			return wrong("%q is not a repository: write it as owner/name.", r.repo)
		}
		return nil
	}
	var repos []string
	all := rd.named(r.prompt)
	for _, p := range all {
		if !slices.ContainsFunc(repos, func(known string) bool { return strings.EqualFold(known, p.repo) }) {
			repos = append(repos, p.repo)
		}
	}
	switch len(repos) {
	case 0:
	case 1:
		r.at(all[0])
		for _, p := range all[1:] {
			if p.number != 0 && p.number != r.pull.number { // several pull requests: about all of them, and in none
				r.pull = pull{}
				break
			}
			r.pull.sure = r.pull.sure || p.sure
		}
	default:
		r.several = repos
	}
	return nil
}

// place is what an address or a number names.
type place struct {
	pull
	ref string
}

// at puts the request there.
func (r *request) at(p place) {
	r.repo = p.repo
	if r.ref == "" {
		r.ref = p.ref
	}
	if p.number != 0 && r.ref == "" {
		r.pull = p.pull
	}
}

// named lists the places that a text names: those that look like o/r#12, then the addresses, each in order.
func (rd reader) named(text string) []place {
	var list []place
	if !strings.Contains(text, "/") {
		return nil // most messages
	}
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2]) // at most nine digits
		list = append(list, place{pull: pull{repo: m[1], number: n}})
	}
	if rd.address == nil {
		return list
	}
	for _, m := range rd.address.FindAllStringSubmatch(text, -1) {
		owner, name, rest := m[1], strings.TrimSuffix(strings.TrimRight(m[2], "."), ".git"), m[3]
		if name == "" || slices.Contains(pages, strings.ToLower(owner)) {
			continue
		}
		list = append(list, address(owner+"/"+name, strings.Split(strings.Trim(rest, "/"), "/")))
	}
	return list
}

// address is what the path behind a repository's address says. Where a branch ends and a directory begins it does not say: only a branch
// alone is taken.
func address(repo string, path []string) place {
	p := place{pull: pull{repo: repo}}
	switch {
	case path[0] == "pull" && len(path) > 1:
		number, _, _ := strings.Cut(path[1], "#")
		if n, err := strconv.Atoi(strings.TrimRight(number, ".,;:!?")); err == nil && n > 0 && n < 1e9 {
			p.number, p.sure = n, true
		}
	case path[0] == "tree" && len(path) == 2:
		if name, err := url.PathUnescape(strings.TrimRight(path[1], ".,;:!?")); err == nil {
			p.ref, _ = tasks.ParseBranch(name) // no branch: none is meant
		}
	}
	return p
}
