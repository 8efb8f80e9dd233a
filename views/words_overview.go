package views

// The overview.
var (
	tMoneyOverview = word{"资金与通知总览", "Money and delivery overview"}
	tLive          = word{"实时", "Live"}
	tDelayed       = word{"有延迟：每 10 秒更新", "Delayed: updated every 10 s"}
	tOffline       = word{"离线：数字停在", "Offline: figures stand still since"}
	tPaused        = word{"已暂停", "Paused"}
	tUpdated       = word{"更新于", "updated"}
	tPause         = word{"暂停", "Pause"}
	tResume        = word{"继续", "Resume"}
	tKeyPause      = word{"暂停实时更新", "Pause live updates"}
	tTimeRange     = word{"时间范围", "Time range"}

	tAtRisk      = word{"在险资金", "Money at risk"}
	tUntold      = word{"已收款，商户未确认", "Paid, merchant not told"}
	tCompensated = word{"补偿中", "Being compensated"}
	tStuck       = word{"卡在中间态", "Stuck mid-flow"}
	tMismatch    = word{"异常款待处理", "Payments that fit no order"}
	tNoMoney     = word{"无", "None"}
	tClearSince  = word{"%s 起没有在险资金", "nothing at risk since %s"}
	tOrdersN     = word{"%s%s 笔", "orders: %s%s"}
	tOldestSince = word{"最早", "oldest from"}
	tHourAgo     = word{"比一小时前", "vs 1 h ago"}
	tCurveOf     = word{"近 24 小时的变化", "over the last 24 hours"}

	tOutcomes     = word{"商户通知结果", "Notification outcomes"}
	tOKWord       = word{"成功", "Delivered"}
	tRetriedWord  = word{"重试", "Retried"}
	tRate         = word{"成功率", "Success rate"}
	tRateOf       = word{"%s 成功率", "%s success"}
	tMerchantP95  = word{"商户 P95 耗时", "Merchant p95"}
	tLagP95       = word{"回调→通知 P95", "Callback to notify p95"}
	tPerSecond    = word{"/秒", "/s"}
	tLastMinutes  = word{"近 5 分钟", "last 5 min"}
	tBarTitle     = word{"%s  成功 %s · 重试 %s · 失败 %s", "%s  delivered %s · retried %s · failed %s"}
	tChartSays    = word{"%s 内 %s 次通知，成功 %s，重试 %s，失败 %s", "Within %s, %s attempts: %s delivered, %s retried, %s failed"}
	tAsTable      = word{"以表格显示", "Show as table"}
	tNoAttempts   = word{"这段时间没有通知", "No attempts within this time"}
	tNoAttemptsHo = word{"商户被通知后，结果会按时间显示在这里。", "Once merchants are told, what came of it stands here by time."}

	tMerchantHealth = word{"商户健康", "Merchant health"}
	tByRisk         = word{"按在险笔数排序", "most orders at risk first"}
	tRateHour       = word{"1h 成功率", "1 h rate"}
	tTrend          = word{"趋势", "Trend"}
	tP95            = word{"P95", "p95"}
	tWaitingN       = word{"等待", "Waiting"}
	tRiskColumn     = word{"在险", "At risk"}
	tHealthy        = word{"正常", "OK"}
	tDegraded       = word{"偏低", "Degraded"}
	tFailing        = word{"失败多", "Failing"}
	tSlow           = word{"慢", "Slow"}
	tQuiet          = word{"无流量", "Quiet"}
	tNoHealth       = word{"一小时内没有通知商户", "No merchant was told within the hour"}
	tNoHealthHow    = word{"也没有在险的钱。", "And no money is at risk."}

	tQueueTable    = word{"队列", "Queues"}
	tQueue         = word{"队列", "Queue"}
	tRowsWaiting   = word{"积压", "Waiting"}
	tRowsHint      = word{"数据库中等待的记录：以此为准", "Rows that wait in the database: the truth"}
	tInRedis       = word{"Redis", "Redis"}
	tInRedisHint   = word{"Redis 中的任务：只是提醒", "Tasks in Redis: they only nudge"}
	tOldestWait    = word{"最久等待", "Oldest wait"}
	tLate          = word{"偏慢", "Late"}
	tIdle          = word{"空闲", "Idle"}
	tRedisDown     = word{"Redis 没有应答：任务数未知。数据库里的记录不受影响，工作进程会直接从数据库取。", "Redis does not answer: its tasks are unknown. The rows in the database are safe, and the workers take them from there."}
	tLaneLive      = word{"商户通知", "new notifications"}
	tLaneRetry     = word{"重试", "further attempts"}
	tLaneDelayed   = word{"熔断延迟", "waiting for a breaker"}
	tLaneSlow      = word{"慢商户", "slow merchants"}
	tLaneComp      = word{"实时补偿", "compensation"}
	tLaneTimeout   = word{"超时关单", "order timeout"}
	tLaneSweep     = word{"低峰扫描（隔离）", "sweep, isolated"}
	tLaneAlert     = word{"告警", "alerts"}
	tEngine        = word{"队列引擎", "Queue engine"}
	tDatabase      = word{"数据库", "Database"}
	tEngineChild   = word{"内置 redis-server（随服务启动）", "own redis-server (runs with the server)"}
	tEngineOut     = word{"外部 Redis", "external Redis"}
	tEngineMini    = word{"进程内替身", "in-process stand-in"}
	tMiniWarn      = word{"队列在进程内运行，仅供开发", "The queue runs inside the process: for development only"}
	tMiniWarnHow   = word{"没有找到 redis-server。它慢，且重启后不保留任务（数据库里的记录不受影响）。请安装 redis-server，或设置 BACKSTOP_REDIS_URL。", "No redis-server was found. It is slow and keeps no tasks over a restart (the rows in the database are safe). Install redis-server or set BACKSTOP_REDIS_URL."}
	tNeedsYou      = word{"现在要处理", "Needs a person now"}
	tAll           = word{"全部", "All"}
	tLook          = word{"查看", "Look"}
	tAllExceptions = word{"全部异常", "All exceptions"}
	tTodoBreaker   = word{"%s 已熔断", "Breaker open: %s"}
	tTodoBreakers  = word{"另有 %s 个商户已熔断", "Further open breakers: %s"}
	tTodoParked    = word{"挂起 %s 笔", "orders waiting: %s"}
	tTodoAlert     = word{"告警：%s（%s）", "Alert: %s (%s)"}
	tTodoAlerts    = word{"告警：%s，%s 项", "Alert: %s, %s of them"}
	tTodoSupplier  = word{"渠道 %s 静默", "Supplier silent: %s"}
	tTodoSilent    = word{"通常每分钟 %s 条回调，已静默 %d 分钟", "normally %s callbacks a minute, silent for %d min"}
	tTodoFlow      = word{"通常每分钟 %s 条回调，近 %d 分钟只有 %s 条", "normally %s callbacks a minute, within the last %d min only %s"}
	tTodoTitle     = word{"%s %s%s 笔", "%s: %s%s"}
	tNothingSince  = word{"没有要处理的事", "Nothing waits for a person"}

	tWelcome      = word{"从这里开始", "Start here"}
	tWelcomeHow   = word{"三步看到第一笔钱到账、商户被通知。", "Three steps to the first payment that a merchant is told about."}
	tStepSupplier = word{"声明第一个供应商和商户", "Declare the first supplier and merchant"}
	tStepApply    = word{"写入 first.yaml，运行 backstop apply first.yaml，两秒内生效：", "Write first.yaml and run backstop apply first.yaml; it counts within two seconds:"}
	tStepOrder    = word{"让商户下第一笔订单", "Let the merchant create the first order"}
	tStepCall     = word{"把商户的 api_key 放进 API_KEY，然后调用：", "Put the merchant's api_key into API_KEY and call:"}
	tStepCallback = word{"让供应商回调", "Let the supplier call back"}
	tStepAddress  = word{"把这个地址交给供应商，末尾是供应商代码：", "Give this address, which ends in the supplier's code, to the supplier:"}
	tStepDemo     = word{"或者先看它动起来：停下服务，运行", "Or see it alive first: stop the server and run"}
	tDone         = word{"已完成", "done"}
)
