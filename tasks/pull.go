package tasks

// Pull is a pull request, as much of it as somebody needs who wants one looked at. Title and Author are strangers' words.
type Pull struct {
	Repo   string `json:"repo"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	Author string `json:"author"`
	Base   string `json:"base"` // branch
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
	Fork   bool   `json:"fork,omitempty"` // its commits are of another repository, perhaps a stranger's
}
