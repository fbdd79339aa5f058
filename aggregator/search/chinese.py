"""What Chinese words mean in English, so that requests find tools across the two languages.

One of twenty public servers describes its tools in Chinese. The table has the words that names and
descriptions of tools are made of, and those of everyday requests. It is read with the first text
that has Chinese characters.
"""

import re
from collections.abc import Mapping
from functools import cache

from aggregator.search.words import stem

_HAN = "\u4e00-\u9fff"
_RUN = re.compile(f"[{_HAN}]+")


def has_chinese(text: str) -> bool:
    """Tell whether a text has Chinese characters."""
    return not text.isascii() and _RUN.search(text) is not None


def in_english(text: str) -> str:
    """Return a text with the Chinese words that are known in English, and without the others."""
    return _RUN.sub(_translated, text)


@cache
def meanings() -> Mapping[str, tuple[str, ...]]:
    """Return the stems that each pair of characters may stand for, as words are cut into pairs."""
    known, found = _known(), dict[str, dict[str, None]]()
    for word, english in known.items():
        for at in range(len(word) - 1):
            pair = word[at : at + 2]
            if pair == word or pair not in known:
                found.setdefault(pair, {})[stem(english)] = None
    return {pair: tuple(stems) for pair, stems in found.items()}


def _translated(run: re.Match[str]) -> str:
    known = _known()
    return f" {' '.join(known[word] for word in _words().findall(run[0]))} "


@cache
def _words() -> re.Pattern[str]:
    """Return what finds the words of a run, of several that begin alike the longest."""
    return re.compile("|".join(sorted(_known(), key=len, reverse=True)))


@cache
def _known() -> Mapping[str, str]:
    """Return the English word for each Chinese one."""
    entries = (entry.split() for entry in CHINESE.split(","))
    return {word: english for english, *listed in entries for word in listed}


CHINESE = """
academic 学术, account 账户 账号, activity 活动, actor 演员, add 添加 新增 增加 相加 加法,
address 地址, admin 管理员, advertisement 广告, age 年龄, agent 代理 智能, ai 人工智能,
air 空气 空调, airport 机场, alarm 闹钟, album 专辑 相册, alert 警报 告警 预警, alibaba 阿里,
alipay 支付宝, all 所有 全部, analyze 分析, animal 动物, anime 动漫 动画, announcement 公告,
answer 回答 答案, app 应用, approve 审批, archive 归档, area 面积, arrange 安排, art 艺术,
article 文章, ask 提问, asset 资产, assign 分配, assistant 助手, attachment 附件, attack 攻击,
attraction 景点 景区, audio 音频, authenticate 认证, author 作者, available 可用, avatar 头像,
average 平均, baby 宝宝 婴儿, background 背景, backup 备份, baidu 百度, balance 余额, bank 银行,
bar 柱状图, barcode 条形码, basketball 篮球, batch 批量, bilibili 哔哩, bill 账单, birthday 生日,
block 区块, blood 血压 血糖, bond 债券, book 书籍 图书 读书 预订 预定, branch 分支, brand 品牌,
breakfast 早餐, browser 浏览 浏览器, budget 预算, build 构建, bus 公交, business 商业 业务,
button 按钮, buy 买入 购买, cache 缓存, calculate 计算, calendar 日历 农历 黄历 万年历, call 调用,
calorie 热量 卡路里, camera 相机 摄像, cancel 取消, captcha 验证码, car 汽车 车辆 车型,
card 卡片 卡牌, cart 购物车, category 分类 类别, certificate 证书, change 变更 更改 改动 变动,
channel 频道, character 角色, charging 充电, chart 图表, chat 聊天, check 检查 检测,
child 儿童 孩子, chinese 中文, cinema 影院 电影院, citation 引文, city 城市, clear 清除 清空,
click 点击, clip 剪辑, clone 克隆, close 关闭, clothing 服装, cloud 云端 云计算 云服务,
code 代码 编码, coffee 咖啡, collection 收藏 集合, color 颜色, comic 漫画, command 命令 指令,
comment 评论, commit 提交, company 公司 企业, compare 比较 对比, complete 完成, component 组件,
compress 压缩, concert 演唱会 音乐会, condition 条件, config 配置, connection 连接, contact 联系,
content 内容, context 上下 上下文, contract 合约 合同, conversation 对话, convert 转换 换算,
cook 烹饪, coordinate 坐标, copy 复制, cost 成本 花费, count 计数 数量, country 国家, coupon 优惠券,
course 课程, court 法院, create 创建 新建 建立, crop 裁剪, crypto 加密,
cryptocurrency 虚拟货币 加密货币 数字货币, culture 文化, currency 货币 外汇, current 当前 现在 目前,
custom 自定 自定义, customer 客户 顾客, daily 每日 日报, data 数据, database 数据库, date 日期,
deadline 截止, debt 债务, debug 调试, decrypt 解密, default 默认, definition 定义, delete 删除,
delivery 外卖 配送, deploy 部署, deposit 存款, describe 描述, description 说明, design 设计,
detail 详情 详细 明细, developer 开发, device 设备 仪器, dictionary 字典, diet 饮食 减肥,
difference 差异 差别 区别, digital 数码, dinner 晚餐 晚饭, direction 路线 方向, directory 目录,
director 导演, discount 优惠 折扣, disease 疾病, dish 菜肴, distance 距离, divide 除以 除法,
doctor 医生, document 文档, domain 域名, door 门锁, douban 豆瓣, download 下载, draw 绘制 绘画 画图,
drink 饮料, driving 驾车, drone 无人机, earnings 业绩, earthquake 地震, eat 吃饭, economy 经济,
edit 编辑, education 教育, electricity 电力 电费, email 邮件 邮箱, emoji 表情, employee 员工,
end 结束, energy 能源, english 英文 英语, entertainment 娱乐, entity 实体, environment 环境 环保,
equation 方程, equipment 装备, error 错误 失败, evaluate 评估, event 事件, exam 考试, example 示例,
exchange 兑换 交换, execute 执行, exercise 锻炼, expense 支出 费用, experience 经历 经验,
export 导出, expression 表达式, extract 提取, face 人脸, factory 工厂, family 家庭, fashion 时尚,
feed 订阅, festival 节日, fetch 抓取, field 字段, file 文件, fill 填充 填写, filter 过滤 筛选,
finance 金融 财务 财经, find 寻找, firewall 防火墙, fitness 健身, flight 航班 机票 飞机, flood 洪水,
flow 流程, flowchart 流程图, folder 文件夹, follow 关注, font 字体, food 美食 食物 食品,
football 足球, forecast 预报 预测, form 表单, format 格式, formula 公式, fortune 命理 八字 算命,
forward 转发, french 法语, friend 好友 朋友, fruit 水果, function 函数 功能, fund 基金, game 游戏,
gas 燃气, gender 性别, generate 生成, get 获取 取得, gift 礼物, global 全球, gold 黄金,
government 政府, grammar 语法, group 分组, guide 指南 攻略 教程, health 健康, heart 心率,
height 高度, hero 英雄, history 历史, holiday 假期 节假日, horoscope 星座 运势, host 主机,
hotel 酒店 住宿, house 房屋, humidity 湿度, idea 创意 想法, image 图片 图像, import 导入,
income 收入, index 索引 指数, industry 行业, info 信息, ingredient 食材 配料, input 输入,
insert 插入, install 安装, insurance 保险, interest 利息, interface 接口, international 国际,
internet 互联 互联网, investment 投资, invoice 发票, issue 问题, item 物品, japanese 日语 日文,
job 工作 职位 招聘, judge 判决, key 密钥, keyboard 键盘, keyword 关键 关键词 关键字, knowledge 知识,
korean 韩语, language 语言, latest 最新, law 法律 法规, learn 学习, length 长度, level 等级 级别,
license 驾照 许可, light 灯光, like 点赞, limit 限制, line 折线图, link 链接, list 列表 列出,
live 直播, load 加载, loan 贷款, local 本地, location 位置 地点, log 日志, login 登录,
logistics 物流 快递, logout 登出 退出, lottery 彩票 抽奖, luggage 行李, lunar 阴历, lunch 午餐 午饭,
lyrics 歌词, machine 机器, manage 管理, manager 经理, map 地图, market 市场 行情, marketing 营销,
match 匹配 比赛 赛事, math 数学, maximum 最大, meal 餐食 用餐, meat 肉类, media 媒体,
medical 医疗 医学 医院, medicine 药品 药物, meeting 会议, member 成员 会员, memory 记忆 内存,
merge 合并, message 消息 短信, metric 指标, migrate 迁移, mindmap 思维导图, minimum 最小,
model 模型, modify 修改, monitor 监控, month 月份 每月, mouse 鼠标, move 移动, movie 电影,
multiply 相乘 乘法, museum 博物馆, music 音乐 歌曲, name 名称 名字, navigate 导航, nearby 附近 周边,
news 新闻 资讯 头条, node 节点, note 笔记 备忘, notification 通知, number 号码 数字, nutrition 营养,
object 对象, ocr 文字识别, oil 油价, open 打开, operation 操作, optimize 优化, optional 可选,
order 订单 下单, organization 组织 机构, output 输出, overview 概览 概述, page 页面, paper 论文,
paragraph 段落, parameter 参数, park 公园, parking 停车, parse 解析, passport 护照, password 密码,
patent 专利, payment 支付 付款, percentage 百分比 比例, performance 性能, permission 权限,
person 个人 人员, pet 宠物, phone 手机 电话 手机号, photo 照片, pie 饼图, place 场所,
plan 计划 规划, platform 平台, play 播放, player 玩家, playlist 歌单, plot 剧情, podcast 播客,
poem 诗词 古诗, policy 政策, population 人口, port 端口, position 持仓, post 发布 帖子,
presentation 演示 幻灯, price 价格 报价 多少钱 房价 股价 票价, print 打印, priority 优先,
process 处理 进程, product 产品 商品, profile 资料 档案, profit 利润, programming 编程,
progress 进度, project 项目, prompt 提示, property 属性 房产, province 省份, public 公共,
publish 发表, push 推送, qrcode 二维码, quality 质量, query 查询, question 问答 题目,
radio 电台 广播, random 随机 随机数, range 范围, rank 排行 排名 榜单 排行榜 段位,
rate 汇率 利率 费率, read 读取 阅读, realtime 实时, recent 最近 近期, recharge 充值,
recipe 菜谱 食谱 菜品 做菜, recognize 识别, recommend 推荐, record 记录, reference 引用 参考,
refresh 刷新, refund 退款 退货, region 地区 地域 区域, register 注册, related 相关 关联,
relationship 关系, reminder 提醒, remote 远程, remove 移除, rename 重命 重命名, rent 租房 租赁,
reply 回复, report 报告 报表, repository 仓库, request 请求, research 研究 调研, reserve 预约,
resize 缩放, resource 资源, restaurant 餐厅 饭店 餐馆, restore 恢复, result 结果, resume 简历,
return 返回, review 评价 评测 审查, risk 风险, robot 机器人, rollback 回滚, rotate 旋转, route 路径,
rule 规则, run 运行, salary 工资 薪资, sales 销售, save 保存, scan 扫描, scanner 扫描仪,
schedule 日程 时刻, schema 模式, school 学校, science 科学, score 评分 得分, scrape 爬取 爬虫,
screenshot 截图 截屏, script 脚本, search 搜索 检索 查找 搜一搜, section 章节, security 安全,
select 选择, sell 卖出 出售, send 发送, sensor 传感, sentence 句子, server 服务器, service 服务,
session 会话, set 设置, share 分享 共享, shareholder 股东, shop 店铺 商家, shopping 购物 电商,
show 显示 展示, sign 签名 签署, singer 歌手, size 大小 尺寸, skill 技能, sleep 睡眠, slide 幻灯片,
social 社交 社会, software 软件, sort 排序, soup 汤类, source 来源, space 空间, specific 特定 指定,
speed 速度, sport 体育 运动, spreadsheet 电子表格, square 平方, standard 标准, start 开始 启动,
statement 语句, station 车站 站点, statistics 统计, status 状态, stock 股票 股市 库存, stop 停止,
store 存储 商店, story 故事 小说, string 字符串, structure 结构, student 学生, style 风格 样式,
subtract 减去 减法, subway 地铁, suggestion 建议, sum 求和 总和, summary 摘要 总结 概要,
supermarket 超市, supplier 供应商, support 支持, survey 问卷 调查, symbol 符号, symptom 症状,
sync 同步, system 系统, table 表格, tag 标签, taobao 淘宝, target 目标, task 任务 待办,
tax 税务 税收, taxi 打车 出租, tea 茶叶, teacher 老师, team 团队, technology 科技 技术,
temperature 温度 气温 体温, template 模板, test 测试, text 文本, think 思考, ticket 车票 门票 余票,
tiktok 抖音, time 时间 几点, title 标题, today 今日 今天, token 令牌 代币, tomorrow 明天, tool 工具,
topic 话题 主题, total 总数, track 跟踪 追踪, trade 买卖, trademark 商标, traffic 交通,
train 火车 列车 高铁 高铁票 火车票, transaction 交易, transcript 字幕 转录, transfer 转账 转移,
translate 翻译, travel 旅行 旅游 出行, trending 热门 热搜 热榜 趋势 热点, trigger 触发, trip 行程,
tv 电视, type 类型, typhoon 台风, undo 撤销, unit 单位, update 更新, upload 上传, url 网址,
usage 用量, user 用户, validate 验证 校验, value 数值, variable 变量, vegetable 蔬菜, verify 核实,
version 版本, video 视频, view 查看, virtual 虚拟, visa 签证, voice 语音, volume 音量 成交,
vote 投票, vulnerability 漏洞, wait 等待, walking 步行, wallet 钱包, wallpaper 壁纸, warehouse 仓储,
water 水费, weather 天气 气象, web 网页 网络, website 网站, wechat 微信, wedding 婚礼 结婚,
week 本周 下周 一周, weibo 微博, weight 体重, width 宽度, wind 风速, window 窗口, wine 红酒,
withdraw 提现, word 单词, workflow 工作流, write 写入 编写, writing 写作, xiaohongshu 小红书,
year 年份 每年, yesterday 昨天, zhihu 知乎, zodiac 生肖
"""
"""An English word and the Chinese ones that mean it; each of these is there once."""
