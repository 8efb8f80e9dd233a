package console

import (
	"context"
	"net/http"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/comparison"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/work"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) comparisons() listPage[comparison.Comparison] {
	return listPage[comparison.Comparison]{
		spec: console.ComparisonList, always: true, read: s.Console.Comparisons, columns: work.ComparisonColumns,
	}
}

// comparisonPage shows a comparison with the orders that differed.
func (s *handlers) comparisonPage(c *fiber.Ctx) error {
	id, err := strconv.ParseInt(c.Params("comparison"), 10, 64)
	if err != nil {
		return act.ErrNotFound
	}
	one, err := s.Console.Comparison(c.UserContext(), id)
	if err != nil {
		return err
	}
	return send(s, c, http.StatusOK, listPage[console.Difference]{
		spec: console.DifferenceList, path: "/comparisons/" + strconv.FormatInt(id, 10), always: true, within: console.DifferencesOf(id),
		read: s.Console.Differences, columns: work.DifferenceColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.Difference) (templ.Component, error) {
			return work.ComparisonPage(p, l, work.ComparisonData{Comparison: one}), nil
		},
	})
}
