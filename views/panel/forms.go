package panel

import "backstop/internal/base/text"

var tPickAll = text.Text{ZH: "选中本页", EN: "Select the page"}

var tPickRow = text.Text{ZH: "选中 %s", EN: "Select %s"}

var tRecordedAs = text.Text{ZH: "审计记录：%s", EN: "Recorded as %s"}
