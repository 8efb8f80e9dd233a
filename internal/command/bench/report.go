package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"text/tabwriter"
	"time"
)

// Figure is one result.
type Figure struct {
	Group string  `json:"group"` // limits, embedded or postgresql
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// Ratio to the direct posts of the same run; 0 = none.
	Ratio float64 `json:"ratio_to_direct,omitempty"`
	Goal  string  `json:"goal,omitempty"`
	Met   *bool   `json:"goal_met,omitempty"`
}

// AtMost returns the figure with an upper limit as its goal.
func (f Figure) AtMost(limit float64) Figure {
	met := f.Value <= limit
	f.Goal, f.Met = fmt.Sprintf("≤ %s", number(limit, f.Unit)), &met
	return f
}

// AtLeast returns the figure with a lower limit as its goal; words is its text in the report.
func (f Figure) AtLeast(limit float64, words string) Figure {
	met := f.Value >= limit
	f.Goal, f.Met = words, &met
	return f
}

// Report collects figures.
type Report struct {
	direct  float64 // direct posts per second
	figures []Figure
	skipped []string

	comparisons []comparison // of the isolation part
}

func (r *Report) Add(f Figure) { r.figures = append(r.figures, f) }

func (r *Report) Skip(what string) { r.skipped = append(r.skipped, what) }

// Find returns a figure's value, 0 if it was not measured.
func (r *Report) Find(group, name string) float64 {
	for _, f := range r.figures {
		if f.Group == group && f.Name == name {
			return f.Value
		}
	}
	return 0
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	all := map[string]any{
		"measured_at": time.Now().UTC().Format(time.RFC3339), "cores": runtime.NumCPU(), "go": runtime.Version(),
		"load_shares_cores": true, "figures": r.figures, "skipped": r.skipped,
	}
	if r.comparisons != nil {
		all["isolation"] = r.comparisons
	}
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (r *Report) writeText(w io.Writer) error {
	_, _ = fmt.Fprintf(w, "%d cores, shared by the server, its databases, the load generator and the merchants' sink; %s\n\n",
		runtime.NumCPU(), runtime.Version())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for _, f := range r.figures {
		if f.Group != group {
			group = f.Group
			_, _ = fmt.Fprintf(t, "%s\tvalue\tto direct\tgoal\t\n", group)
		}
		ratio, met := "", ""
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.3f", f.Ratio)
		}
		if f.Met != nil {
			met = map[bool]string{true: "met", false: "missed"}[*f.Met]
		}
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", f.Name, number(f.Value, f.Unit), ratio, f.Goal, met)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := writeComparisons(w, r.comparisons); err != nil {
		return err
	}
	for _, what := range r.skipped {
		_, _ = fmt.Fprintf(w, "left out: %s\n", what)
	}
	return nil
}

// number formats a value with about three significant digits.
func number(v float64, unit string) string {
	digits := 0
	switch size := math.Abs(v); {
	case size < 1:
		digits = 3
	case size < 10:
		digits = 2
	case size < 100:
		digits = 1
	}
	if unit == "/s" {
		return fmt.Sprintf("%.*f%s", digits, v, unit)
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}
