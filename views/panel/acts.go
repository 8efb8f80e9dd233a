// Package panel draws the parts of pages that several districts show: decisions, proposals, notes,
// checks, forms and what is shown unmasked.
package panel

import "backstop/internal/base/text"

var tBatchAll = text.Text{ZH: "：全部 %s%s 行（预检）", EN: ": all %s%s (dry run)"}
