<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
    <context>
        <name>ActionRow</name>
        <message>
            <source>Previous version</source>
            <translation>上一个版本</translation>
        </message>
        <message>
            <source>Next version</source>
            <translation>下一个版本</translation>
        </message>
        <message>
            <source>Copy message</source>
            <translation>复制消息</translation>
        </message>
        <message>
            <source>Edit message</source>
            <translation>编辑消息</translation>
        </message>
        <message>
            <source>Regenerate answer</source>
            <translation>重新生成回答</translation>
        </message>
        <message>
            <source>Stopped</source>
            <translation>已停止</translation>
        </message>
        <message>
            <source>Cut at the length limit</source>
            <translation>已达到长度上限</translation>
        </message>
        <message>
            <source>first token {time}</source>
            <translation>首个词元 {time}</translation>
        </message>
        <message>
            <source>{count} tokens</source>
            <translation>{count} 个词元</translation>
        </message>
    </context>
    <context>
        <name>ChatDelegate</name>
        <message>
            <source>New title</source>
            <translation>新标题</translation>
        </message>
    </context>
    <context>
        <name>ChatListModel</name>
        <message>
            <source>Found</source>
            <translation>搜索结果</translation>
        </message>
        <message>
            <source>Pinned</source>
            <translation>已置顶</translation>
        </message>
        <message>
            <source>Today</source>
            <translation>今天</translation>
        </message>
        <message>
            <source>Earlier</source>
            <translation>更早</translation>
        </message>
    </context>
    <context>
        <name>ChatListView</name>
        <message>
            <source>Chats</source>
            <translation>对话列表</translation>
        </message>
    </context>
    <context>
        <name>ChatPage</name>
        <message>
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
    </context>
    <context>
        <name>CodeView</name>
        <message>
            <source>Copy code</source>
            <translation>复制代码</translation>
        </message>
        <message>
            <source>Code</source>
            <translation>代码</translation>
        </message>
        <message>
            <source>Copied</source>
            <translation>已复制</translation>
        </message>
    </context>
    <context>
        <name>Composer</name>
        <message>
            <source>Ask anything</source>
            <translation>有问题，尽管问</translation>
        </message>
        <message>
            <source>Message to send</source>
            <translation>要发送的消息</translation>
        </message>
        <message>
            <source>Send message</source>
            <translation>发送消息</translation>
        </message>
        <message>
            <source>Editing your message: the answer below it will be written anew</source>
            <translation>正在编辑消息：下方的回答将重新生成</translation>
        </message>
        <message>
            <source>Cancel editing</source>
            <translation>取消编辑</translation>
        </message>
        <message>
            <source>Stop (Esc)</source>
            <translation>停止 (Esc)</translation>
        </message>
    </context>
    <context>
        <name>ConversationView</name>
        <message>
            <source>Conversation</source>
            <translation>对话</translation>
        </message>
        <message>
            <source>Jump to latest</source>
            <translation>跳到最新</translation>
        </message>
    </context>
    <context>
        <name>DockTitle</name>
        <message>
            <source>Tear off or put back</source>
            <translation>分离或放回</translation>
        </message>
        <message>
            <source>Close panel</source>
            <translation>关闭面板</translation>
        </message>
    </context>
    <context>
        <name>EmptyState</name>
        <message>
            <source>What shall we talk about?</source>
            <translation>想聊点什么？</translation>
        </message>
        <message>
            <source>Explain why the sky is blue</source>
            <translation>解释天空为什么是蓝色的</translation>
        </message>
        <message>
            <source>Write a poem about a hummingbird</source>
            <translation>写一首关于蜂鸟的诗</translation>
        </message>
        <message>
            <source>Reverse a list in Python</source>
            <translation>用 Python 反转列表</translation>
        </message>
        <message>
            <source>What is the capital of France?</source>
            <translation>法国的首都是哪里？</translation>
        </message>
    </context>
    <context>
        <name>ErrorBox</name>
        <message>
            <source>Try again</source>
            <translation>重试</translation>
        </message>
    </context>
    <context>
        <name>ExpertDock</name>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
    </context>
    <context>
        <name>ExpertPanel</name>
        <message>
            <source>No model is loaded</source>
            <translation>尚未加载模型</translation>
        </message>
        <message>
            <source>Its experts will appear here while it answers.</source>
            <translation>模型回答时，其专家会显示在这里。</translation>
        </message>
        <message>
            <source>This model has no experts</source>
            <translation>此模型没有专家</translation>
        </message>
        <message>
            <source>It is a dense model: every token passes through all of its weights.</source>
            <translation>这是稠密模型：每个词元都会经过全部权重。</translation>
        </message>
        <message>
            <source>{layers} layers with {experts} experts each · {calls} calls</source>
            <translation>{layers} 层，每层 {experts} 个专家 · {calls} 次调用</translation>
        </message>
    </context>
    <context>
        <name>Format</name>
        <message>
            <source>{rate} tok/s</source>
            <translation>{rate} 词元/秒</translation>
        </message>
        <message>
            <source>{ms} ms</source>
            <translation>{ms} 毫秒</translation>
        </message>
        <message>
            <source>{s} s</source>
            <translation>{s} 秒</translation>
        </message>
        <message>
            <source>{m} min {s} s</source>
            <translation>{m} 分 {s} 秒</translation>
        </message>
        <message>
            <source>{n} s left</source>
            <translation>剩余 {n} 秒</translation>
        </message>
        <message>
            <source>{n} min left</source>
            <translation>剩余 {n} 分钟</translation>
        </message>
    </context>
    <context>
        <name>HeatMap</name>
        <message>
            <source>Expert heat map</source>
            <translation>专家热力图</translation>
        </message>
        <message>
            <source>Layer {layer}, expert {expert}
{count} calls, {share} % of the layer's</source>
            <translation>第 {layer} 层，专家 {expert}
{count} 次调用，占本层 {share} %</translation>
        </message>
        <message>
            <source>experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>layers</source>
            <translation>层</translation>
        </message>
    </context>
    <context>
        <name>HelpDialog</name>
        <message>
            <source>Help</source>
            <translation>帮助</translation>
        </message>
        <message>
            <source>Keyboard</source>
            <translation>键盘快捷键</translation>
        </message>
        <message>
            <source>Everything stays on this machine: chats, models and what you type. A link is opened in your browser only when you click it.</source>
            <translation>一切都留在本机：对话、模型以及您输入的内容。只有在您点击时，链接才会在浏览器中打开。</translation>
        </message>
        <message>
            <source>Send the message</source>
            <translation>发送消息</translation>
        </message>
        <message>
            <source>Start a new line</source>
            <translation>换行</translation>
        </message>
        <message>
            <source>Stop the answer</source>
            <translation>停止回答</translation>
        </message>
        <message>
            <source>Edit the last message, in an empty field</source>
            <translation>输入框为空时编辑上一条消息</translation>
        </message>
        <message>
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
        <message>
            <source>Search chats</source>
            <translation>搜索对话</translation>
        </message>
        <message>
            <source>Go to the message field</source>
            <translation>转到输入框</translation>
        </message>
        <message>
            <source>Regenerate the last answer</source>
            <translation>重新生成上一个回答</translation>
        </message>
        <message>
            <source>Choose a model</source>
            <translation>选择模型</translation>
        </message>
        <message>
            <source>Copy the last answer</source>
            <translation>复制上一个回答</translation>
        </message>
        <message>
            <source>Rename or delete, in the chat list</source>
            <translation>在对话列表中重命名或删除</translation>
        </message>
        <message>
            <source>Show or hide the chat list</source>
            <translation>显示或隐藏对话列表</translation>
        </message>
        <message>
            <source>Show or hide the experts</source>
            <translation>显示或隐藏专家面板</translation>
        </message>
        <message>
            <source>Larger or smaller text</source>
            <translation>放大或缩小文字</translation>
        </message>
        <message>
            <source>Settings</source>
            <translation>设置</translation>
        </message>
        <message>
            <source>This help</source>
            <translation>本帮助</translation>
        </message>
    </context>
    <context>
        <name>Legend</name>
        <message>
            <source>Legend: from rarely to often called; marked: experts of the newest token</source>
            <translation>图例：从很少调用到经常调用；标记：最新词元的专家</translation>
        </message>
        <message>
            <source>rare</source>
            <translation>少</translation>
        </message>
        <message>
            <source>often</source>
            <translation>多</translation>
        </message>
        <message>
            <source>newest token</source>
            <translation>最新词元</translation>
        </message>
    </context>
    <context>
        <name>LoadNotice</name>
        <message>
            <source>Copy the whole message</source>
            <translation>复制完整信息</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>取消</translation>
        </message>
        <message>
            <source>Try again</source>
            <translation>重试</translation>
        </message>
    </context>
    <context>
        <name>MainWindow</name>
        <message>
            <source>Deleted "{title}"</source>
            <translation>已删除“{title}”</translation>
        </message>
        <message>
            <source>Undo</source>
            <translation>撤销</translation>
        </message>
        <message>
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
        <message>
            <source>Open a model file</source>
            <translation>打开模型文件</translation>
        </message>
        <message>
            <source>Models (*.gguf)</source>
            <translation>模型 (*.gguf)</translation>
        </message>
        <message>
            <source>All files (*)</source>
            <translation>所有文件 (*)</translation>
        </message>
        <message>
            <source>Add a folder of models</source>
            <translation>添加模型文件夹</translation>
        </message>
        <message>
            <source>No model</source>
            <translation>无模型</translation>
        </message>
        <message>
            <source>It could not be opened</source>
            <translation>无法打开</translation>
        </message>
        <message>
            <source>Ready</source>
            <translation>就绪</translation>
        </message>
        <message>
            <source>Choose one above to begin</source>
            <translation>请先在上方选择一个模型</translation>
        </message>
        <message>
            <source>Write now, and send it when a model is loaded</source>
            <translation>可以先写下来，加载模型后即可发送</translation>
        </message>
        <message>
            <source>No model is loaded yet; your text is kept.</source>
            <translation>尚未加载模型，您的文字已保留。</translation>
        </message>
        <message>
            <source>The last answer was copied</source>
            <translation>已复制上一个回答</translation>
        </message>
        <message>
            <source>Something went wrong: {error}</source>
            <translation>出错了：{error}</translation>
        </message>
        <message>
            <source>Colibri ended unexpectedly last time. Your chats were kept.</source>
            <translation>Colibri 上次意外退出。您的对话均已保留。</translation>
        </message>
    </context>
    <context>
        <name>MessageView</name>
        <message>
            <source>You</source>
            <translation>您</translation>
        </message>
        <message>
            <source>Answer</source>
            <translation>回答</translation>
        </message>
        <message>
            <source>The answer could not be finished.</source>
            <translation>回答未能完成。</translation>
        </message>
        <message>
            <source>Copy selection</source>
            <translation>复制所选内容</translation>
        </message>
        <message>
            <source>Copy message</source>
            <translation>复制消息</translation>
        </message>
        <message>
            <source>Edit message</source>
            <translation>编辑消息</translation>
        </message>
        <message>
            <source>Regenerate answer</source>
            <translation>重新生成回答</translation>
        </message>
    </context>
    <context>
        <name>ModelLoader</name>
        <message>
            <source>Fetching {name}</source>
            <translation>正在下载 {name}</translation>
        </message>
        <message>
            <source>Preparing kernels for this processor</source>
            <translation>正在为此处理器准备计算内核</translation>
        </message>
        <message>
            <source>Loading {name}</source>
            <translation>正在加载 {name}</translation>
        </message>
        <message>
            <source>{done} of {total}</source>
            <translation>{done} / {total}</translation>
        </message>
        <message>
            <source>This is a fault of Colibri; the log has more: {error}</source>
            <translation>这是 Colibri 的故障，详情见日志：{error}</translation>
        </message>
    </context>
    <context>
        <name>ModelPicker</name>
        <message>
            <source>Cancel loading</source>
            <translation>取消加载</translation>
        </message>
        <message>
            <source>Choose a model</source>
            <translation>选择模型</translation>
        </message>
        <message>
            <source>Loading {name}</source>
            <translation>正在加载 {name}</translation>
        </message>
        <message>
            <source>Model: {name}</source>
            <translation>模型：{name}</translation>
        </message>
        <message>
            <source>starter</source>
            <translation>入门模型</translation>
        </message>
        <message>
            <source>loaded</source>
            <translation>已加载</translation>
        </message>
        <message>
            <source>loading</source>
            <translation>加载中</translation>
        </message>
        <message>
            <source>Open a model file…</source>
            <translation>打开模型文件…</translation>
        </message>
        <message>
            <source>Add a folder of models…</source>
            <translation>添加模型文件夹…</translation>
        </message>
        <message>
            <source>Unload the model</source>
            <translation>卸载模型</translation>
        </message>
    </context>
    <context>
        <name>ProgressRow</name>
        <message>
            <source>Reading prompt {done} / {total}</source>
            <translation>正在读取提示 {done} / {total}</translation>
        </message>
        <message>
            <source>Thinking…</source>
            <translation>思考中…</translation>
        </message>
    </context>
    <context>
        <name>ProseView</name>
        <message>
            <source>Message text</source>
            <translation>消息文本</translation>
        </message>
    </context>
    <context>
        <name>ReasoningView</name>
        <message>
            <source>Reasoning</source>
            <translation>思考过程</translation>
        </message>
        <message>
            <source>Thinking…</source>
            <translation>思考中…</translation>
        </message>
        <message>
            <source>Thought for {time}</source>
            <translation>思考了 {time}</translation>
        </message>
        <message>
            <source>Thought briefly</source>
            <translation>略作思考</translation>
        </message>
        <message>
            <source>Hide the reasoning</source>
            <translation>隐藏思考过程</translation>
        </message>
        <message>
            <source>Show the reasoning</source>
            <translation>显示思考过程</translation>
        </message>
    </context>
    <context>
        <name>SettingsDialog</name>
        <message>
            <source>Settings</source>
            <translation>设置</translation>
        </message>
        <message>
            <source>Appearance</source>
            <translation>外观</translation>
        </message>
        <message>
            <source>As the system</source>
            <translation>跟随系统</translation>
        </message>
        <message>
            <source>Light</source>
            <translation>浅色</translation>
        </message>
        <message>
            <source>Dark</source>
            <translation>深色</translation>
        </message>
        <message>
            <source>Theme</source>
            <translation>主题</translation>
        </message>
        <message>
            <source>Text size</source>
            <translation>文字大小</translation>
        </message>
        <message>
            <source>Language</source>
            <translation>语言</translation>
        </message>
        <message>
            <source>Takes effect at the next start</source>
            <translation>下次启动时生效</translation>
        </message>
        <message>
            <source>Engine</source>
            <translation>引擎</translation>
        </message>
        <message>
            <source>Automatic: physical cores</source>
            <translation>自动：物理核心数</translation>
        </message>
        <message>
            <source>Threads</source>
            <translation>线程数</translation>
        </message>
        <message>
            <source>{n} tokens</source>
            <translation>{n} 个词元</translation>
        </message>
        <message>
            <source>Takes effect when a model is loaded; longer needs more memory</source>
            <translation>加载模型时生效；越长占用内存越多</translation>
        </message>
        <message>
            <source>Context length</source>
            <translation>上下文长度</translation>
        </message>
        <message>
            <source>Answers</source>
            <translation>回答</translation>
        </message>
        <message>
            <source>Temperature</source>
            <translation>温度</translation>
        </message>
        <message>
            <source>Top p</source>
            <translation>Top p</translation>
        </message>
        <message>
            <source>Min p</source>
            <translation>Min p</translation>
        </message>
        <message>
            <source>Repetition penalty</source>
            <translation>重复惩罚</translation>
        </message>
        <message>
            <source>Off</source>
            <translation>关闭</translation>
        </message>
        <message>
            <source>Top k</source>
            <translation>Top k</translation>
        </message>
        <message>
            <source>As far as the context goes</source>
            <translation>以上下文为限</translation>
        </message>
        <message>
            <source>Longest answer, tokens</source>
            <translation>回答最长词元数</translation>
        </message>
        <message>
            <source>Model folders</source>
            <translation>模型文件夹</translation>
        </message>
        <message>
            <source>GGUF files in these folders are offered in the model list.</source>
            <translation>这些文件夹中的 GGUF 文件会出现在模型列表中。</translation>
        </message>
        <message>
            <source>Add a folder…</source>
            <translation>添加文件夹…</translation>
        </message>
        <message>
            <source>Remove</source>
            <translation>移除</translation>
        </message>
        <message>
            <source>Add a folder of models</source>
            <translation>添加模型文件夹</translation>
        </message>
    </context>
    <context>
        <name>Sidebar</name>
        <message>
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
        <message>
            <source>Search chats</source>
            <translation>搜索对话</translation>
        </message>
        <message>
            <source>Nothing found</source>
            <translation>没有找到</translation>
        </message>
        <message>
            <source>Your chats will be listed here</source>
            <translation>您的对话会显示在这里</translation>
        </message>
        <message>
            <source>Rename</source>
            <translation>重命名</translation>
        </message>
        <message>
            <source>Unpin</source>
            <translation>取消置顶</translation>
        </message>
        <message>
            <source>Pin</source>
            <translation>置顶</translation>
        </message>
        <message>
            <source>Delete</source>
            <translation>删除</translation>
        </message>
    </context>
    <context>
        <name>StatusLine</name>
        <message>
            <source>How much of the context the chat takes up</source>
            <translation>对话占用的上下文</translation>
        </message>
        <message>
            <source>First token {time}</source>
            <translation>首个词元 {time}</translation>
        </message>
        <message>
            <source>Context {used} / {total}</source>
            <translation>上下文 {used} / {total}</translation>
        </message>
    </context>
    <context>
        <name>WindowActions</name>
        <message>
            <source>&amp;Chat</source>
            <translation>对话(&amp;C)</translation>
        </message>
        <message>
            <source>New chat</source>
            <translation>新对话</translation>
        </message>
        <message>
            <source>Search chats</source>
            <translation>搜索对话</translation>
        </message>
        <message>
            <source>Go to the message field</source>
            <translation>转到输入框</translation>
        </message>
        <message>
            <source>Regenerate answer</source>
            <translation>重新生成回答</translation>
        </message>
        <message>
            <source>Edit last message</source>
            <translation>编辑上一条消息</translation>
        </message>
        <message>
            <source>Stop answer</source>
            <translation>停止回答</translation>
        </message>
        <message>
            <source>Copy last answer</source>
            <translation>复制上一个回答</translation>
        </message>
        <message>
            <source>Settings…</source>
            <translation>设置…</translation>
        </message>
        <message>
            <source>Quit</source>
            <translation>退出</translation>
        </message>
        <message>
            <source>&amp;Model</source>
            <translation>模型(&amp;M)</translation>
        </message>
        <message>
            <source>Choose a model…</source>
            <translation>选择模型…</translation>
        </message>
        <message>
            <source>Open a model file…</source>
            <translation>打开模型文件…</translation>
        </message>
        <message>
            <source>Add a folder of models…</source>
            <translation>添加模型文件夹…</translation>
        </message>
        <message>
            <source>Unload the model</source>
            <translation>卸载模型</translation>
        </message>
        <message>
            <source>&amp;View</source>
            <translation>视图(&amp;V)</translation>
        </message>
        <message>
            <source>Chat list</source>
            <translation>对话列表</translation>
        </message>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>Theme as the system</source>
            <translation>主题跟随系统</translation>
        </message>
        <message>
            <source>Light theme</source>
            <translation>浅色主题</translation>
        </message>
        <message>
            <source>Dark theme</source>
            <translation>深色主题</translation>
        </message>
        <message>
            <source>Larger text</source>
            <translation>放大文字</translation>
        </message>
        <message>
            <source>Smaller text</source>
            <translation>缩小文字</translation>
        </message>
        <message>
            <source>Normal text</source>
            <translation>默认文字大小</translation>
        </message>
        <message>
            <source>Full screen</source>
            <translation>全屏</translation>
        </message>
        <message>
            <source>&amp;Help</source>
            <translation>帮助(&amp;H)</translation>
        </message>
        <message>
            <source>Help and shortcuts</source>
            <translation>帮助与快捷键</translation>
        </message>
    </context>
    <context>
        <name>Navigation</name>
        <message>
            <source>Pages</source>
            <translation>页面</translation>
        </message>
    </context>
</TS>
