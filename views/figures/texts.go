package figures

import "backstop/internal/base/text"

// Texts of the analytics page.
var (
	tAnalyticsLead = text.Text{ZH: "通知、支付与异常的走势，以及接下来会怎样", EN: "Trends of notifications, payments and exceptions, and forecasts"}
	tNotifiedRate  = text.Text{ZH: "通知成功率", EN: "Notified rate"}
	tNotifiedDef   = text.Text{
		ZH: "分母：该时段内需要通知商户的订单（按通知生成时间归入时段）；分子：其中商户至今已全部确认的订单。重发不重复计数，订阅方不计入。目标 %s，其余为误差预算；仍在等待的订单按未通知计。",
		EN: "Of the orders whose notification was created in the span, those that the merchant has acknowledged by now. A notification sent again counts once; subscribers do not count. The objective is %s; the rest is the error budget, and orders that still wait count against it.",
	}
	tWaits    = text.Text{ZH: "从支付到通知成功的时间", EN: "Time from paid to notified"}
	tWaitsDef = text.Text{
		ZH: "从通知生成（入账的同一事务）到商户确认的时间，按订单支付的时段归类；尚未通知成功的订单不在其中。分位数由直方图估算，桶边界处精确。",
		EN: "From the notification's creation, in the transaction that books the payment, to the merchant's acknowledgement, by the span of the payment. Orders not notified yet are not included. Percentiles are estimated from a histogram and exact at its bounds.",
	}
	tHeatTitle = text.Text{ZH: "分布", EN: "Distribution"}
	tCurve     = text.Text{ZH: "多快通知到", EN: "How soon merchants are notified"}
	tCurveDef  = text.Text{
		ZH: "该时段需要通知的订单中，在 1 秒、10 秒、1 分钟、1 小时内通知成功的比例。",
		EN: "Of all orders of which merchants had to be notified, the share notified within each time.",
	}
	tCauses    = text.Text{ZH: "失败原因", EN: "Causes of failure"}
	tCausesDef = text.Text{
		ZH: "每次未成功的通知尝试按原因计一次。订单数与金额只算首次尝试即因该原因失败的订单，因此每笔钱只计一次。“新增”指过去 7 天内首次出现的原因。",
		EN: "Each attempt that failed counts once, by its cause. Orders and money are those whose first attempt failed for it, so that money counts once. A cause is new if it first appeared within the last seven days.",
	}
	tBySupplier = text.Text{ZH: "各渠道的订单量与转化率", EN: "Volume and conversion per supplier"}
	tByMerchant = text.Text{ZH: "各商户的订单量与转化率", EN: "Volume and conversion per merchant"}
	tFlowsDef   = text.Text{
		ZH: "该时段内创建的订单，以及其中至今已支付的比例与金额（按创建时间归类）。导入的历史订单不计入。变化与上周同一时段相比。",
		EN: "Orders created in the span, and of these the share and the money paid by now. Imported orders do not count. The growth is against the same span of last week.",
	}
	tExceptionsBy  = text.Text{ZH: "异常：类型、时长与处理用时", EN: "Exceptions by kind, age and time to decision"}
	tExceptionsDef = text.Text{
		ZH: "左：当前未结异常按已等待时长（最新 10,000 条）。右：该时段内出现且已结的异常，在多长时间内处理完。",
		EN: "Left: open exceptions by how long they have been open (the newest 10,000). Right: exceptions opened in the span and decided, by how soon.",
	}
	tForecast       = text.Text{ZH: "预测", EN: "Forecast"}
	tExpectedVolume = text.Text{ZH: "预计支付量", EN: "Expected volume"}
	tExpectedDef    = text.Text{
		ZH: "预计需要通知的订单数（每 5 分钟）：最近 4 周同一时刻（含前后各 5 分钟）的中位数 × 最近几小时的水平（实际与往常之比的指数加权平均，半衰期 1 小时）。区间来自上周预测误差的中位绝对偏差（MAD），约含 95 %。至少需要 14 天数据。",
		EN: "Orders to notify per 5 minutes: the median of the same time of the last 4 weeks, and the 5 minutes before and after it, × the level of the last hours (exponentially weighted ratio of actual to usual, half-life 1 hour). The band is from the median absolute deviation of last week's forecasts and holds about 95 %. It needs 14 days of data.",
	}
	tBacklog    = text.Text{ZH: "积压", EN: "Backlog"}
	tBacklogDef = text.Text{
		ZH: "每分钟到期未发的通知数（下段），以及因熔断挂起的通知数（上段，不计入趋势）。趋势为最近 30 分钟的 Theil–Sen 斜率，区间 99 %，并按相邻残差的相关性放宽；只有整个区间都在上升时才给出时间。上限取告警规则“队列过长”。",
		EN: "Notifications that are due, by the minute, and above them those held for breakers, of which there is no trend. The trend is the Theil–Sen slope of the last 30 minutes with a 99 % interval, widened by the correlation of neighbouring residuals; a time is given only if the whole interval rises. The limit is that of the alert rule for queues.",
	}
	tSuccessRate = text.Text{ZH: "成功率", EN: "Success rate"}
	tRateDef     = text.Text{
		ZH: "每分钟被商户确认的尝试占比；尝试少于 5 次的分钟不计。方法与积压相同；下限取告警规则“通知尝试成功率过低”。",
		EN: "The share of attempts that merchants acknowledge, by the minute; minutes with fewer than 5 attempts are left out. The method is that of the backlog; the limit is that of the alert rule for the success rate.",
	}
	tToNotify    = text.Text{ZH: "应通知", EN: "To notify"}
	tNotifiedN   = text.Text{ZH: "已通知", EN: "Notified"}
	tByOrders    = text.Text{ZH: "按订单", EN: "By orders"}
	tByMoney     = text.Text{ZH: "按金额", EN: "By money"}
	tBudget      = text.Text{ZH: "误差预算已用", EN: "Error budget spent"}
	tNotifiedHit = text.Text{
		ZH: "%s\n按订单 %s · 按金额 %s\n上周同期 %s · 应通知 %s 笔",
		EN: "%s\nby orders %s · by money %s\nlast week %s · orders to notify: %s",
	}
	tNotifiedSays   = text.Text{ZH: "通知成功率 %s，目标 %s", EN: "Notified rate %s, objective %s"}
	tWaitsHit       = text.Text{ZH: "%s\np50 %s · p95 %s · p99 %s\n上周同期 p95 %s", EN: "%s\np50 %s · p95 %s · p99 %s\nlast week p95 %s"}
	tWaitsSays      = text.Text{ZH: "从支付到通知成功：p50 %s，p95 %s，p99 %s", EN: "From paid to notified: p50 %s, p95 %s, p99 %s"}
	tHeatSays       = text.Text{ZH: "各时段通知用时的分布，颜色越深订单越多", EN: "How long notifications took, by span: darker means more orders"}
	tWithin         = text.Text{ZH: "用时不超过", EN: "Within"}
	tShare          = text.Text{ZH: "占比", EN: "Share"}
	tCurveSays      = text.Text{ZH: "通知成功的比例 %s", EN: "Share notified within %s"}
	tFailedAttempts = text.Text{ZH: "失败次数", EN: "Failed attempts"}
	tCumulative     = text.Text{ZH: "累计", EN: "Cumulative"}
	tMoney          = text.Text{ZH: "金额", EN: "Money"}
	tNewSince       = text.Text{ZH: "新增于", EN: "New since"}
	tNewSinceAt     = text.Text{ZH: "新增 · %s 起", EN: "new since %s"}
	tStillWaiting   = text.Text{ZH: "仍在重试", EN: "Still retrying"}
	tFailedN        = text.Text{ZH: "失败 %s 次", EN: "%s failed attempts"}
	tCausesSays     = text.Text{ZH: "%s 次失败，%s 种原因", EN: "%s failed attempts, %s causes"}
	tOtherCauses    = text.Text{ZH: "其他", EN: "Others"}
	tConversion     = text.Text{ZH: "转化率", EN: "Conversion"}
	tVsLastWeek     = text.Text{ZH: "较上周", EN: "vs last week"}
	tOpenN          = text.Text{ZH: "未结", EN: "Open"}
	tDecidedN       = text.Text{ZH: "已结", EN: "Decided"}
	tDecidedIn      = text.Text{ZH: "%s 内结", EN: "in %s"}
	tExpectedN      = text.Text{ZH: "预计", EN: "Expected"}
	tActual         = text.Text{ZH: "实际", EN: "Actual"}
	tLow            = text.Text{ZH: "区间下限", EN: "Band from"}
	tHigh           = text.Text{ZH: "区间上限", EN: "Band to"}
	tActualHit      = text.Text{ZH: "%s · 实际 %s", EN: "%s · actual %s"}
	tExpectedHit    = text.Text{ZH: "%s · 预计 %s（%s 至 %s）", EN: "%s · expected %s (%s to %s)"}
	tVolumeSays     = text.Text{ZH: "未来一小时预计约 %s 笔（%s 至 %s）", EN: "About %s orders within the next hour (%s to %s)"}
	tTrendLine      = text.Text{ZH: "趋势", EN: "Trend"}
	tLimitValue     = text.Text{ZH: "限值", EN: "Limit"}
	tUnknownTrend   = text.Text{ZH: "最近 30 分钟的数据不足，无法判断趋势。", EN: "Too little data in the last 30 minutes for a trend."}
	tLater          = text.Text{ZH: "更晚", EN: "later"}
	tTooLittle      = text.Text{ZH: "数据不足", EN: "Too little data"}
	tBeyond         = text.Text{ZH: "已越限", EN: "Beyond the limit"}
	tSoon           = text.Text{ZH: "一小时内越限", EN: "Within the hour"}
	tDrifting       = text.Text{ZH: "缓慢接近", EN: "Slowly approaching"}
	tSteady         = text.Text{ZH: "平稳", EN: "Steady"}
	tPerHour        = text.Text{ZH: "每小时 %s", EN: "%s an hour"}
	tLevel          = text.Text{ZH: "当前水平", EN: "Level now"}
	tLevelOf        = text.Text{ZH: "往常的 %s", EN: "%s of the usual"}
	tErrorOf        = text.Text{ZH: "上周误差", EN: "Last week's error"}
	tErrorHow       = text.Text{
		ZH: "提前 1 小时预测的平均绝对误差占总量的比例（WAPE）",
		EN: "mean absolute error of forecasts one hour ahead, as a share of the volume (WAPE)",
	}
	tInside    = text.Text{ZH: "落在区间内", EN: "Within the band"}
	tInsideHow = text.Text{ZH: "上周实际值，目标 95 %", EN: "of last week's values; the target is 95 %"}
	tInputs    = text.Text{ZH: "输入", EN: "Inputs"}
	tInputsOf  = text.Text{ZH: "%d 天数据，%d 周", EN: "%d days of data, %d weeks"}
	tOutside   = text.Text{
		ZH: "最近 15 分钟的支付量不在区间内，暂不预测；回到区间后恢复。",
		EN: "The last 15 minutes are outside of the band: no forecast until they are back within it.",
	}
	tBacklogOf   = text.Text{ZH: "共 %s 条待发：到期 %s，熔断挂起 %s。", EN: "%s wait: %s due, %s held for breakers. "}
	tDue         = text.Text{ZH: "到期", EN: "Due"}
	tHeldN       = text.Text{ZH: "熔断挂起", EN: "Held for breakers"}
	tNeedDays    = text.Text{ZH: "还没有足够的数据", EN: "Not enough data yet"}
	tNeedDaysHow = text.Text{ZH: "预测需要 %d 天的数据，目前有 %d 天。", EN: "A forecast needs %d days of data; there are %d."}
	tDefinition  = text.Text{ZH: "定义", EN: "Definition"}
	tCSV         = text.Text{ZH: "CSV", EN: "CSV"}
	tNothingYet  = text.Text{ZH: "这段时间还没有数据", EN: "No data in this time range"}
	tNothingHow  = text.Text{ZH: "换一个更长的时间范围，或等第一批订单到来。", EN: "Choose a longer range, or wait for the first orders."}
	tNoFailures  = text.Text{ZH: "这段时间没有失败的尝试", EN: "No attempt failed in this time range"}
	tNoOpen      = text.Text{ZH: "没有未结的异常", EN: "No open exceptions"}
	tZoneDays    = text.Text{ZH: "按 %s 的自然日", EN: "days in %s"}
	tSinceDay    = text.Text{ZH: "数据自 %s 起", EN: "figures since %s"}
	tCounted     = text.Text{ZH: "只计最新 10,000 条", EN: "only the newest 10,000 are counted"}
	tBand        = text.Text{ZH: "区间", EN: "Band"}
	tMethod      = text.Text{ZH: "方法、输入与误差", EN: "Method, inputs and error"}
)

var backlogTexts = outlookTexts{
	reached: text.Text{ZH: "积压约在 %[2]s 达到 %[1]s（%[3]s 至 %[4]s）。", EN: "The backlog reaches %s at about %s (%s to %s)."},
	beyond:  text.Text{ZH: "积压为 %s，已超过 %s。", EN: "The backlog is %s, beyond %s."},
	steady:  text.Text{ZH: "暂无积压趋势：上限 %s，趋势水平 %s。", EN: "No trend towards %s; its level is %s."},
}

var rateTexts = outlookTexts{
	reached: text.Text{ZH: "成功率约在 %[2]s 跌破 %[1]s（%[3]s 至 %[4]s）。", EN: "The success rate falls below %s at about %s (%s to %s)."},
	beyond:  text.Text{ZH: "成功率为 %s，已低于 %s。", EN: "The success rate is %s, below %s."},
	steady:  text.Text{ZH: "没有跌破 %s 的趋势，趋势水平 %s。", EN: "No trend towards %s; its level is %s."},
}

// Texts of the reports.
var (
	tReportsNone         = text.Text{ZH: "还没有日报", EN: "No reports yet"}
	tReportsHow          = text.Text{ZH: "每天结束十分钟后生成当天的日报。", EN: "The report of a day is made ten minutes after the day has ended."}
	tReportOf            = text.Text{ZH: "Backstop 日报 · %s", EN: "Backstop daily report · %s"}
	tReportLead          = text.Text{ZH: "%s（%s），统计于 %s", EN: "%s (%s), counted %s"}
	tReportMade          = text.Text{ZH: "生成时间", EN: "Made at"}
	tReportNotified      = text.Text{ZH: "%s / %s 笔，上周同期 %s", EN: "%s of %s orders; a week before: %s"}
	tReportRisk          = text.Text{ZH: "%s 笔，前一日 %s", EN: "orders: %s; the day before: %s"}
	tReportFailing       = text.Text{ZH: "异常渠道 %d 个，异常商户 %d 个", EN: "failing suppliers: %d, merchants: %d"}
	tReportTold          = text.Text{ZH: "通知商户", EN: "Merchants notified"}
	tReportMoney         = text.Text{ZH: "应通知金额", EN: "Money to be notified"}
	tReportMoneyNotified = text.Text{ZH: "已通知金额", EN: "Money notified"}
	tReportAtRisk        = text.Text{ZH: "日终风险资金", EN: "Money at risk when the day ended"}
	tRiskThen            = text.Text{ZH: "日终风险资金", EN: "At risk at the day's end"}
	tRiskOrders          = text.Text{ZH: "日终风险订单", EN: "Orders at risk at the day's end"}
	tRiskUnknown         = text.Text{ZH: "日终时服务未运行，没有记录。", EN: "Not recorded: the server was not running at the end of the day."}
	tPart                = text.Text{ZH: "构成", EN: "Part"}
	tDecisions           = text.Text{ZH: "裁定", EN: "Decisions"}
	tReportDecided       = text.Text{ZH: "当日裁定", EN: "Decided on this day"}
	tNoDecisions         = text.Text{ZH: "当日没有裁定。", EN: "Nothing was decided on this day."}
	tNumber              = text.Text{ZH: "笔数", EN: "Number"}
	tNoExceptions        = text.Text{ZH: "当日没有新增或结束的异常。", EN: "No exception was opened or closed on this day."}
	tOpenedN             = text.Text{ZH: "新增", EN: "Opened"}
	tFailingSuppliers    = text.Text{ZH: "异常渠道", EN: "Failing suppliers"}
	tFailingMerchants    = text.Text{ZH: "异常商户", EN: "Failing merchants"}
	tNoneFailed          = text.Text{ZH: "没有。", EN: "None."}
	tOpenings            = text.Text{ZH: "熔断次数", EN: "Breaker opened"}
	tAttemptsN           = text.Text{ZH: "通知次数", EN: "Attempts"}
	tReportGrew          = text.Text{ZH: "较上周同日增长", EN: "Growth compared with a week before"}
	tNothingGrew         = text.Text{ZH: "没有增长。", EN: "Nothing grew."}
	tThatDay             = text.Text{ZH: "当日", EN: "That day"}
	tGrowth              = text.Text{ZH: "增幅", EN: "Growth"}
	tReportSince         = text.Text{
		ZH: "日报生成后有变化：目前已通知 %s / %s 笔（%s）。日报本身不再改动。",
		EN: "Changed since: %s of %s orders are notified by now (%s). The report itself does not change.",
	}
	tReportFixed     = text.Text{ZH: "日报生成后不再改动。", EN: "A report does not change after it has been made."}
	tReportOtherZone = text.Text{
		ZH: "此日报按 %s 的日期统计，与当前设置的时区不同。",
		EN: "This report's day is in the time zone %s, not the one that is configured now.",
	}
	tReportMailed    = text.Text{ZH: "邮件", EN: "Emails"}
	tReportNotMailed = text.Text{
		ZH: "没有邮件：未设置 BACKSTOP_REPORT_URLS，或这一天是停机后补做的。",
		EN: "No email: BACKSTOP_REPORT_URLS is not set, or the report was made later, after a downtime.",
	}
	tRowsNow    = text.Text{ZH: "当前明细", EN: "Rows now"}
	tReportOpen = text.Text{ZH: "在控制台查看", EN: "Open in the console"}
)
