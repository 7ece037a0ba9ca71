package forge

import (
	"fmt"
	"regexp"
	"strings"
)

// Repository is a parsed repository name: acme/api, group/subgroup/api, or one of these below a host, as in github.com/acme/api.
// The host may be left out where there is one forge.
type Repository struct {
	Host string // may be empty
	Path string // owner and name with a slash between them; more than one slash where a forge nests groups
}

// maxName is the length of a whole name.
const maxName = 255

// segment begins with neither a dash nor a dot, so that it can be no option and no hidden or parent directory; the last may begin with a
// dot, because acme/.github is a repository.
var (
	segment     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	lastSegment = regexp.MustCompile(`^\.?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
)

// ParseRepository reads a repository name. A first segment with a dot is a host if at least two follow.
func ParseRepository(name string) (Repository, error) {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	ok := last >= 1 && len(name) <= maxName && !strings.Contains(name, "..") && parts[last] != ".git" && lastSegment.MatchString(parts[last])
	for _, part := range parts[:last] {
		ok = ok && segment.MatchString(part) && !strings.HasSuffix(part, ".git")
	}
	if !ok {
		return Repository{}, fmt.Errorf("%.100q is not the name of a repository, such as owner/name", name)
	}
	if strings.Contains(parts[0], ".") && last >= 2 {
		return Repository{Host: parts[0], Path: strings.Join(parts[1:], "/")}, nil
	}
	return Repository{Path: name}, nil
}

// String returns the name with its host, if it has one.
func (r Repository) String() string {
	if r.Host == "" {
		return r.Path
	}
	return r.Host + "/" + r.Path
}

// Owner returns everything before the repository's own name.
func (r Repository) Owner() string { return r.Path[:max(strings.LastIndexByte(r.Path, '/'), 0)] }

// Name returns the last segment.
func (r Repository) Name() string { return r.Path[strings.LastIndexByte(r.Path, '/')+1:] }
