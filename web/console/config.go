package console

import "net/http"

// configPage shows what is in force, with problems first.
func (c *Console) configPage(w http.ResponseWriter, r *http.Request) error {
	found, err := c.View.Configured(r.Context())
	if err != nil {
		return err
	}
	return c.Out.Page(w, r, http.StatusOK, "config", found)
}
