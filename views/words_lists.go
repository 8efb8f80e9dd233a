package views

// Lists: their time, filters, pages and ends.
var (
	tWindow1h    = word{"最近 1 小时", "Last hour"}
	tWindow24h   = word{"最近 24 小时", "Last 24 hours"}
	tWindow7d    = word{"最近 7 天", "Last 7 days"}
	tWindow31d   = word{"最近 31 天", "Last 31 days"}
	tAllTime     = word{"全部时间", "All time"}
	tUntilDay    = word{"截至这天", "Up to the day"}
	tFiltersSet  = word{"已设的筛选条件", "Filters that are set"}
	tDropFilter  = word{"去掉筛选条件 %s: %s", "Drop the filter %s: %s"}
	tNumberWord  = word{"编号", "Number"}
	tMatching    = word{"共 %s%s 条", "%s%s match"}
	tReached     = word{"没有索引可用，这一页没有查到早于或晚于此刻的记录，翻页会继续找：", "No index serves this filter. Not searched further than, and the next page goes on from:"}
	tWindowEnds  = word{"没有查找更早的记录，早于：", "Not searched further than"}
	tNewRows     = word{"有 %d%s 条新记录，显示", "%d%s new, show"}
	tPages       = word{"翻页", "Pages"}
	tNewer       = word{"更新", "Newer"}
	tNothingThen = word{"这段时间里没有记录", "Nothing in this time"}
	tLookFurther = word{"查找更长的时间", "Look further back"}
	tSmallBar    = word{"%s：正常 %s，其他 %s", "%s: %s fine, %s not"}
	tSmallSays   = word{"正常 %s，其他 %s", "%s fine, %s not"}
	tBarsNotify  = word{"给商户的通知", "Attempts to tell merchants"}
	tBarsCalls   = word{"可信的供应商回调", "Authentic callbacks of suppliers"}
	tNeedsPerson = word{"需要人处理", "Needs a person"}
	tUnsettled   = word{"所有未了结", "All waiting"}
	tTooWide     = word{"查得太久了：请缩小筛选条件或时间范围", "This takes too long: narrow the filter or the time"}
	tBadCursor   = word{"翻页地址被改过，或属于另一个筛选：请从最新一页开始", "This page's address was changed or belongs to another filter: begin at the newest page"}
)

// Searching, and one's own sessions.
var (
	tSearch         = word{"查找", "Search"}
	tSearchHow      = word{"可以查：订单号或它末尾的 6 位以上数字、商户单号、供应商流水号、通知编号 ntf_…、商户代码、金额。", "What can be found: an order number or its last 6 digits or more, a merchant's number, a supplier's number, a notification's id ntf_…, a merchant's code, an amount."}
	tNothingFound   = word{"没有找到", "Nothing found"}
	tMerchantOrders = word{"这个商户的订单", "orders of this merchant"}
	tOfAmount       = word{"金额为 %s 的订单", "Orders of the amount %s"}
	tFoundMore      = word{"只列出最新的 %s 笔：请输入更多位数字。", "Only the newest %s are listed: type more digits."}
	tRowsPerPage    = word{"每页行数", "Rows a page"}
	tSessions       = word{"我的登录", "My sessions"}
	tStarted        = word{"登录时间", "Signed in"}
	tLastSeen       = word{"最近使用", "Last used"}
	tThisOne        = word{"就是这里", "This one"}
	tEndOthers      = word{"结束其他登录", "Sign out the others"}
	tActEndOthers   = word{"结束了其他登录", "ended the other sessions"}
	tOthersEnded    = word{"其他登录已结束。", "The other sessions are over."}
)
