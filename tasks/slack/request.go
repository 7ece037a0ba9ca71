package slack

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// request is what the words of a message ask for.
type request struct {
	prompt  string
	repo    string   // "owner/name", a name without owner, render.NoRepository, or empty: it does not say
	also    []string // further repositories, as in repo
	ref     string
	options tasks.Options
	pull    pull     // the pull request it is about; zero: none
	verb    verb     // what to do with it
	perhaps string   // a word that may be the name of a repository, unlike "in detail"
	several []string // repositories it names without saying which one it is about
}

// pull is a pull request that a message names.
type pull struct {
	repo   string
	number int
	sure   bool // named by its URL; o/r#12 may be an issue
}

// reader reads requests with URLs of one GitHub.
type reader struct{ address *regexp.Regexp }

// The forms of URLs and names on GitHub. Its own pages have URLs of the form owner/name, too.
const (
	ownerForm = `[A-Za-z0-9][A-Za-z0-9_-]{0,38}`
	nameForm  = `[A-Za-z0-9._-]{1,100}`
)

var (
	fullForm = regexp.MustCompile(`^` + ownerForm + `/` + nameForm + `$`)
	numbered = regexp.MustCompile(`(?:^|[^\w./#-])(` + ownerForm + `/` + nameForm + `)#([1-9][0-9]{0,8})\b`)
	repoWord = regexp.MustCompile(`(?:^|[\s\pZ])repo=([^\s\pZ]*[^\s\pZ,](?:,[\s\pZ]+` + ownerForm + `/` + nameForm + `)*)`)
	pages    = []string{
		"orgs", "settings", "marketplace", "sponsors", "topics", "features", "apps", "users", "login",
		"search", "enterprise",
	}
)

// newReader returns a reader for a GitHub at a URL, like https://github.com. People may leave out the scheme.
func newReader(github string) reader {
	u, err := url.Parse(github)
	if err != nil || u.Host == "" {
		return reader{}
	}
	at := regexp.QuoteMeta(u.Host + strings.TrimRight(u.Path, "/"))
	return reader{regexp.MustCompile(`(?i)(?:^|[^\w.@/-])(?:https?://)?(?:www\.)?` + at + `/(` + ownerForm + `)/(` +
		nameForm + `)(/[^\s<>|)"'` + "`" + `]*)?`)}
}

// read reads a message, which is Markdown without mentions of the bot. An *tasks.InputError says what is wrong with its
// options.
func (rd reader) read(text string) (request, error) {
	options, rest := cutOptions(text)
	r := request{prompt: rest}
	for _, o := range options {
		if err := r.set(o); err != nil {
			return r, err
		}
	}
	if err := rd.findPlace(&r); err != nil {
		return r, err
	}
	r.readVerb()
	return r, nil
}

// findPlace finds the place that a message names: by an option, by the word repo=, or by URLs and numbers. The first of
// these kinds that occurs counts.
func (rd reader) findPlace(r *request) error {
	if r.repo == "" && strings.Contains(r.prompt, "repo=") { // few messages
		if m := repoWord.FindStringSubmatch(r.prompt); m != nil {
			r.repo = strings.TrimRight(m[1], ".,;:!?")
		}
	}
	if r.repo != "" {
		r.repo, r.also = tasks.SplitRepositories(r.repo)
		named := rd.placesIn(r.repo)
		if len(named) > 0 {
			r.setPlace(named[0])
		}
		if r.repo != render.NoRepository && !fullForm.MatchString(r.repo) && strings.Contains(r.repo, "/") {
			return inputError("%q is not a repository: write it as owner/name.", r.repo)
		}
		return nil
	}
	var repos []string
	all := rd.placesIn(r.prompt)
	for _, p := range all {
		if !slices.ContainsFunc(repos, func(known string) bool { return strings.EqualFold(known, p.repo) }) {
			repos = append(repos, p.repo)
		}
	}
	switch len(repos) {
	case 0:
	case 1:
		r.setPlace(all[0])
		for _, p := range all[1:] {
			// several pull requests: it is about all of them and works at none
			if p.number != 0 && p.number != r.pull.number {
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

// place is what a URL or a number names.
type place struct {
	pull
	ref string
}

// setPlace sets the place of the request.
func (r *request) setPlace(p place) {
	r.repo = p.repo
	if r.ref == "" {
		r.ref = p.ref
	}
	if p.number != 0 && r.ref == "" {
		r.pull = p.pull
	}
}

// placesIn lists the places that a text names: first those of the form o/r#12, then the URLs, each in order.
func (rd reader) placesIn(text string) []place {
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
		list = append(list, placeOfURL(owner+"/"+name, strings.Split(strings.Trim(rest, "/"), "/")))
	}
	return list
}

// placeOfURL reads the path behind a repository's URL. A path does not tell where a branch ends and a directory begins:
// only a branch without a directory is accepted.
func placeOfURL(repo string, path []string) place {
	p := place{pull: pull{repo: repo}}
	switch {
	case path[0] == "pull" && len(path) > 1:
		number, _, _ := strings.Cut(path[1], "#")
		if n, err := strconv.Atoi(strings.TrimRight(number, ".,;:!?")); err == nil && n > 0 && n < 1e9 {
			p.number, p.sure = n, true
		}
	case path[0] == "tree" && len(path) == 2:
		if name, err := url.PathUnescape(strings.TrimRight(path[1], ".,;:!?")); err == nil {
			p.ref, _ = tasks.ParseBranch(name) // ignore what is no branch
		}
	}
	return p
}
