package console

import "net/http"

// configPage shows what is in force, with problems first.
func (c *Console) configPage(w http.ResponseWriter, r *http.Request) error {
	found, err := c.view.Configured(r.Context())
	if err != nil {
		return err
	}
	return c.out.Page(w, r, http.StatusOK, "config", found)
}
