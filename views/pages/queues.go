package pages

import (
	"strconv"
	"strings"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// flowRate writes a rate without a decimal that says nothing.
func flowRate(perMinute float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(perMinute, 'f', 1, 64), ".0")
}

// emptyIn is when a queue is empty, as far as its rates say.
func emptyIn(p *ui.Page, f console.QueueFlow) string {
	d, known := f.Empty()
	switch {
	case !known && (f.More || f.Cut):
		return p.T(text.None)
	case !known:
		return p.T(tDoesNotEmpty)
	case d == 0:
		return p.T(tIsEmpty)
	}
	return p.Rough(d)
}

var flowWords = map[string]text.Text{
	string(queue.Live):    {ZH: "通知", EN: "Notifications"},
	queue.CompensateQueue: {ZH: "补偿任务", EN: "Compensations"},
}

// Texts of this page.
var (
	tQueuesHow    = text.Text{ZH: "行数和速率来自数据库，Redis 不可用时同样准确；速率为最近 10 分钟的平均值，熔断挂起的通知不计入等待。", EN: "Rows and rates are from the database, and true without Redis. Rates are means of the last 10 minutes; notifications that wait for a breaker are not counted as waiting."}
	tFlowIn       = text.Text{ZH: "新增", EN: "In"}
	tFlowOut      = text.Text{ZH: "完成", EN: "Out"}
	tPerMinute    = text.Text{ZH: "每分钟", EN: "a minute"}
	tTimeToEmpty  = text.Text{ZH: "预计清空", EN: "Time to empty"}
	tIsEmpty      = text.Text{ZH: "已空", EN: "empty"}
	tDoesNotEmpty = text.Text{ZH: "未在减少", EN: "not falling"}
)
