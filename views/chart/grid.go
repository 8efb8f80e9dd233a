package chart

// GridLine is one horizontal line and its value.
type GridLine struct {
	Y     float64
	Label string
}

// GridStep is a round third of the axis.
func GridStep(most int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, m := range []int64{1, 2, 4, 5, 8} {
			if 3*m*unit >= most {
				return m * unit
			}
		}
	}
}

// Width is the width of a plot in its own units; plots are stretched to their panels.
const Width = 714.0
