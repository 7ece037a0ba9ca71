package githubfake

import "fmt"

// pullJSON is a pull request as lists show it: without the counts and
// mergeable, which a client must not expect there.
func (s *Server) pullJSON(p *pull) object {
	web := fmt.Sprintf("%s/%s/pull/%d", s.url, p.repo.FullName(), p.number)
	api := fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(), p.repo.FullName(), p.number)
	issue := fmt.Sprintf("%srepos/%s/issues/%d", s.APIURL(), p.repo.FullName(), p.number)
	labels := make([]object, len(p.labels))
	for i, name := range p.labels {
		labels[i] = label(name)
	}
	reviewers := make([]object, len(p.reviewers))
	for i, login := range p.reviewers {
		reviewers[i] = s.user(login)
	}
	var merged any
	if p.merged {
		merged = stamp(p.closed)
	}
	return object{
		"id": p.id, "node_id": node("PullRequest", p.id), "number": p.number, "state": p.state, "locked": p.locked,
		"title": p.title, "body": orNull(p.body), "user": s.user(p.user), "draft": p.draft, "labels": labels,
		"url": api, "html_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch",
		"issue_url": issue, "comments_url": issue + "/comments", "commits_url": api + "/commits",
		"review_comments_url": api + "/comments",
		"statuses_url":        s.APIURL() + "repos/" + p.repo.FullName() + "/statuses/" + p.headSHA,
		"created_at":          stamp(p.created), "updated_at": stamp(p.updated), "closed_at": stamp(p.closed),
		"merged_at": merged,
		// The shas are those of the last push: a base branch that moved since is
		// not followed, as on GitHub.
		"head": s.side(p.headRepo, p.head, p.headSHA), "base": s.side(p.repo, p.base, p.baseSHA),
		"author_association": s.association(p.repo, p.user), "auto_merge": nil, "merge_commit_sha": nil,
		"assignee": nil, "assignees": []object{}, "requested_reviewers": reviewers, "requested_teams": []object{},
		"milestone": nil,
	}
}

// pullDetail is a pull request as a single GET and webhooks show it.
func (s *Server) pullDetail(p *pull) object {
	added, removed := p.lines()
	o := s.pullJSON(p)
	o["merged"], o["merged_by"] = p.merged, nil
	o["mergeable"], o["rebaseable"], o["mergeable_state"] = nil, nil, "unknown"
	o["comments"], o["review_comments"], o["commits"] = len(p.comments), len(p.inline), p.commits
	o["additions"], o["deletions"], o["changed_files"] = added, removed, len(p.files)
	// Only meaningful for forks; GitHub says false within one repository.
	o["maintainer_can_modify"] = p.headRepo != nil && p.headRepo != p.repo
	return o
}

// side is the head or the base. The repository is null when a fork is gone.
func (s *Server) side(r *Repo, branch, sha string) object {
	if r == nil {
		return object{"label": "unknown:" + branch, "ref": branch, "sha": sha, "user": nil, "repo": nil}
	}
	return object{
		"label": r.owner + ":" + branch, "ref": branch, "sha": sha, "user": s.user(r.owner), "repo": s.repository(r),
	}
}

func (s *Server) file(p *pull, f fileDiff) object {
	at := "/" + p.headSHA + "/" + f.path
	web := s.url + "/" + p.repo.FullName()
	o := object{
		"sha": f.sha, "filename": f.path, "status": f.status,
		"additions": f.added, "deletions": f.removed, "changes": f.added + f.removed,
		"blob_url": web + "/blob" + at, "raw_url": web + "/raw" + at,
	}
	// Absent, not null, for binary and huge files.
	if f.patch != "" {
		o["patch"] = f.patch
	}
	if f.previous != "" {
		o["previous_filename"] = f.previous
	}
	return o
}
