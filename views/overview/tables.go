package overview

import "backstop/internal/base/text"

// Texts of this page.
var (
	tOutcomes        = text.Text{ZH: "商户通知结果", EN: "Notification outcomes"}
	tOKWord          = text.Text{ZH: "成功", EN: "Delivered"}
	tRetriedWord     = text.Text{ZH: "重试", EN: "Retried"}
	tRate            = text.Text{ZH: "尝试成功率", EN: "Attempt success"}
	tRateOf          = text.Text{ZH: "%s 尝试成功率", EN: "%s attempt success"}
	tOrdersLine      = text.Text{ZH: "已通知订单", EN: "Orders notified"}
	tOrdersNotified  = text.Text{ZH: "%s 已通知到商户的订单", EN: "%s orders notified"}
	tMoneyNotifiedOf = text.Text{ZH: "%s / %s", EN: "%s of %s"}
	tUntriedOrders   = text.Text{ZH: "%s%s 笔尚未尝试通知，最早的已等 %s", EN: "%s%s not tried yet, oldest %s"}
	tMerchantP95     = text.Text{ZH: "商户 P95 耗时", EN: "Merchant p95"}
	tLagP95          = text.Text{ZH: "回调→通知 P95", EN: "Callback to notify p95"}
	tPerSecond       = text.Text{ZH: "/秒", EN: "/s"}
	tLastMinutes     = text.Text{ZH: "近 5 分钟", EN: "last 5 min"}
	tNoAttempts      = text.Text{ZH: "这段时间没有通知", EN: "No attempts in this time range"}
	tNoAttemptsHo    = text.Text{ZH: "商户被通知后，结果会按时间显示在这里。", EN: "Once merchants are notified, the results appear here over time."}
	tByRisk          = text.Text{ZH: "按风险笔数排序", EN: "most orders at risk first"}
	tTrend           = text.Text{ZH: "趋势", EN: "Trend"}
	tNoHealth        = text.Text{ZH: "一小时内没有通知商户", EN: "No merchant was notified in the last hour"}
	tNoHealthHow     = text.Text{ZH: "也没有风险资金。", EN: "And no money is at risk."}
	tQueueTable      = text.Text{ZH: "队列", EN: "Queues"}
	tQueue           = text.Text{ZH: "队列", EN: "Queue"}
	tRowsWaiting     = text.Text{ZH: "积压", EN: "Waiting"}
	tRowsHint        = text.Text{ZH: "数据库中等待的记录：以此为准", EN: "Waiting rows in the database: authoritative"}
	tInRedis         = text.Text{ZH: "Redis", EN: "Redis"}
	tInRedisHint     = text.Text{ZH: "Redis 中的任务：只是提醒", EN: "Tasks in Redis: hints only"}
	tOldestWait      = text.Text{ZH: "最久等待", EN: "Oldest wait"}
	tRedisDown       = text.Text{
		ZH: "Redis 没有应答：任务数未知。数据库里的记录不受影响，工作进程会直接从数据库取。",
		EN: "Redis does not answer: the number of tasks is unknown. The rows in the database are safe, and workers read them from there.",
	}
	tEngine   = text.Text{ZH: "队列引擎", EN: "Queue engine"}
	tDatabase = text.Text{ZH: "数据库", EN: "Database"}
)
