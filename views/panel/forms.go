package panel

import "backstop/internal/base/text"

var tPickAll = text.Text{ZH: "选中本页", EN: "Select the page"}

var tPickRow = text.Text{ZH: "选中 %s", EN: "Select %s"}
