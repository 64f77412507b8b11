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
        <name>Adviser</name>
        <message>
            <source>A part of the model is missing</source>
            <translation>模型缺少一部分文件</translation>
        </message>
        <message>
            <source>Download the file that is named below into the same folder.</source>
            <translation>请将下面指出的文件下载到同一文件夹。</translation>
        </message>
        <message>
            <source>A download that was interrupted is the usual reason: let its program complete it.</source>
            <translation>通常是下载中断所致：请用原来的程序把它下载完整。</translation>
        </message>
        <message>
            <source>A file or folder cannot be read</source>
            <translation>有文件或文件夹无法读取</translation>
        </message>
        <message>
            <source>Give your user the right to read it, in the file manager&apos;s properties.</source>
            <translation>请在文件管理器的属性中，授予您的用户读取权限。</translation>
        </message>
        <message>
            <source>Is it on a disk that was unplugged, or on a network that is down? Connect it again.</source>
            <translation>它是否在已拔出的磁盘或已断开的网络上？请重新连接。</translation>
        </message>
        <message>
            <source>Parts of the model contradict each other</source>
            <translation>模型的各部分相互矛盾</translation>
        </message>
        <message>
            <source>Download the whole model again, all files in the same version.</source>
            <translation>请重新下载整个模型，所有文件须为同一版本。</translation>
        </message>
        <message>
            <source>If you changed config.json yourself, undo it: below is the value that does not fit.</source>
            <translation>如果您改动过 config.json，请改回去：下面指出了不相符的值。</translation>
        </message>
        <message>
            <source>A file is damaged</source>
            <translation>文件已损坏</translation>
        </message>
        <message>
            <source>Download the file that is named below again.</source>
            <translation>请重新下载下面指出的文件。</translation>
        </message>
        <message>
            <source>If it is damaged again, check the disk with the system&apos;s own tools.</source>
            <translation>如果再次损坏，请用系统自带的工具检查磁盘。</translation>
        </message>
        <message>
            <source>This format can run programs, so it is not opened</source>
            <translation>这种格式可能运行程序，因此不予打开</translation>
        </message>
        <message>
            <source>Get it in safetensors: most models are published so, by others if not by the author.</source>
            <translation>请获取 safetensors 格式：大多数模型都以此发布，即使不是作者本人，也有他人发布。</translation>
        </message>
        <message>
            <source>If it is your own, save it again with save_pretrained(…, safe_serialization=True).</source>
            <translation>如果是您自己的模型，请用 save_pretrained(…, safe_serialization=True) 重新保存。</translation>
        </message>
        <message>
            <source>This kind of model is not known here</source>
            <translation>不认识这种模型</translation>
        </message>
        <message>
            <source>Is there a newer version of Colibri? It may know it.</source>
            <translation>是否有更新版本的 Colibri？新版本或许支持它。</translation>
        </message>
        <message>
            <source>Otherwise choose a model of another architecture; the message below names the known ones.</source>
            <translation>否则请选择其他架构的模型；下面的信息列出了支持的架构。</translation>
        </message>
        <message>
            <source>The disk is full</source>
            <translation>磁盘已满</translation>
        </message>
        <message>
            <source>Free some space, for example in the list of models, and try again.</source>
            <translation>请腾出一些空间（例如在模型列表中删除模型），然后重试。</translation>
        </message>
        <message>
            <source>Or go back to the plan and choose a smaller kind, or a folder on another disk.</source>
            <translation>或者返回计划，选择更小的类型，或其他磁盘上的文件夹。</translation>
        </message>
        <message>
            <source>The file cannot be written there</source>
            <translation>文件无法写入该位置</translation>
        </message>
        <message>
            <source>Go back to the plan and choose another name or another folder.</source>
            <translation>请返回计划，选择其他名称或文件夹。</translation>
        </message>
        <message>
            <source>Or give your user the right to write to this folder.</source>
            <translation>或者授予您的用户写入该文件夹的权限。</translation>
        </message>
        <message>
            <source>Another Colibri is writing this file</source>
            <translation>另一个 Colibri 正在写入此文件</translation>
        </message>
        <message>
            <source>Wait for it to end, or cancel it there, and try again.</source>
            <translation>请等它结束，或在那边取消，然后重试。</translation>
        </message>
        <message>
            <source>There is too little memory</source>
            <translation>内存不足</translation>
        </message>
        <message>
            <source>Close other programs, and unload the model in the list of models.</source>
            <translation>请关闭其他程序，并在模型列表中卸载模型。</translation>
        </message>
        <message>
            <source>Then try again.</source>
            <translation>然后重试。</translation>
        </message>
        <message>
            <source>These choices do not go together</source>
            <translation>这些选择不能同时使用</translation>
        </message>
        <message>
            <source>Go back to the plan and change what is named below.</source>
            <translation>请返回计划，更改下面指出的内容。</translation>
        </message>
        <message>
            <source>It did not work</source>
            <translation>没有成功</translation>
        </message>
        <message>
            <source>Read the message below; it says what was expected and what was found.</source>
            <translation>请阅读下面的信息，其中说明了预期的内容和实际的内容。</translation>
        </message>
        <message>
            <source>This is a fault of Colibri</source>
            <translation>这是 Colibri 的错误</translation>
        </message>
        <message>
            <source>Try again: your files are as they were.</source>
            <translation>请重试：您的文件没有变化。</translation>
        </message>
        <message>
            <source>If it happens again, report it with the message below; the log has more.</source>
            <translation>如果再次发生，请附上下面的信息报告；日志中有更多内容。</translation>
        </message>
    </context>
    <context>
        <name>AnswerWait</name>
        <message>
            <source>The speed is being measured first</source>
            <translation>正在先测量速度</translation>
        </message>
    </context>
    <context>
        <name>CalibrationChoice</name>
        <message>
            <source>Calibration</source>
            <translation>校准</translation>
        </message>
        <message>
            <source>On English, Chinese and code (recommended)</source>
            <translation>用英文、中文和代码（推荐）</translation>
        </message>
        <message>
            <source>On a text of your own</source>
            <translation>用您自己的文本</translation>
        </message>
        <message>
            <source>None (quicker)</source>
            <translation>不校准（更快）</translation>
        </message>
        <message>
            <source>Text for calibration</source>
            <translation>用于校准的文本</translation>
        </message>
        <message>
            <source>A text file in UTF-8; 100 kB are enough</source>
            <translation>UTF-8 文本文件；100 kB 就足够</translation>
        </message>
        <message>
            <source>Choose…</source>
            <translation>选择…</translation>
        </message>
        <message>
            <source>Choose a text</source>
            <translation>选择文本</translation>
        </message>
        <message>
            <source>The model reads them first, so that every expert keeps best what it really uses. It takes some minutes for a large model.</source>
            <translation>模型会先阅读它们，使每个专家最好地保留真正用到的部分。大模型需要几分钟。</translation>
        </message>
        <message>
            <source>Best of the kind that the model will be used for.</source>
            <translation>最好是模型将来要处理的那类文本。</translation>
        </message>
        <message>
            <source>All weights count alike: a little less exact, most of all in four bits.</source>
            <translation>所有权重同等对待：精度略低，四比特时最为明显。</translation>
        </message>
    </context>
    <context>
        <name>CarvePage</name>
        <message>
            <source>Choose</source>
            <translation>选择</translation>
        </message>
        <message>
            <source>Plan</source>
            <translation>计划</translation>
        </message>
        <message>
            <source>Measure</source>
            <translation>测量</translation>
        </message>
        <message>
            <source>Decide</source>
            <translation>决定</translation>
        </message>
        <message>
            <source>Chat</source>
            <translation>对话</translation>
        </message>
        <message>
            <source>Read the text, and watch every neuron</source>
            <translation>阅读文本，观察每个神经元</translation>
        </message>
        <message>
            <source>Cut the networks, and fit the routers</source>
            <translation>切分网络，拟合路由器</translation>
        </message>
        <message>
            <source>Measure what each number of experts costs</source>
            <translation>测量每种专家数量的代价</translation>
        </message>
        <message>
            <source>Write the file</source>
            <translation>写入文件</translation>
        </message>
        <message>
            <source>You can go on chatting meanwhile. If Colibri is closed, it goes on at the next start where it was; nothing stays of a carving that is cancelled.</source>
            <translation>您可以继续对话。如果关闭 Colibri，下次启动时会从原处继续；取消后不会留下任何文件。</translation>
        </message>
        <message>
            <source>Choose a dense model</source>
            <translation>选择稠密模型</translation>
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
            <source>Choose a text</source>
            <translation>选择文本</translation>
        </message>
        <message>
            <source>Carving {name}</source>
            <translation>正在切分 {name}</translation>
        </message>
        <message>
            <source>Chat with it, and watch in the panel “Experts” which of them it calls.</source>
            <translation>与它对话，并在“专家”面板中观察它调用了哪些专家。</translation>
        </message>
        <message>
            <source>With all experts on it computes what the dense model does. To see its router choose, set fewer experts in the list of models.</source>
            <translation>启用全部专家时，它的计算与稠密模型相同。要观察路由器的选择，请在模型列表中设置较少的专家。</translation>
        </message>
        <message>
            <source>This is a demonstration of routing: its answers are clearly worse than the dense model&apos;s.</source>
            <translation>这是路由的演示：它的回答明显不如稠密模型。</translation>
        </message>
        <message>
            <source>The model is ready</source>
            <translation>模型已就绪</translation>
        </message>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>{n}, {k} for each token</source>
            <translation>{n} 个，每个词元用 {k} 个</translation>
        </message>
        <message>
            <source>Shared besides</source>
            <translation>另有共享</translation>
        </message>
        <message>
            <source>Perplexity</source>
            <translation>困惑度</translation>
        </message>
        <message>
            <source>{own}; the dense model has {source}</source>
            <translation>{own}；稠密模型为 {source}</translation>
        </message>
        <message>
            <source>Divergence</source>
            <translation>散度</translation>
        </message>
        <message>
            <source>{n} nats</source>
            <translation>{n} 奈特</translation>
        </message>
        <message>
            <source>Carve another</source>
            <translation>再切分一个</translation>
        </message>
    </context>
    <context>
        <name>CarvingTask</name>
        <message>
            <source>Carving {name}</source>
            <translation>正在切分 {name}</translation>
        </message>
    </context>
    <context>
        <name>Chart</name>
        <message>
            <source>tokens, newest on the right</source>
            <translation>词元，最新的在右边</translation>
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
        <name>CheckWords</name>
        <message>
            <source>{check}: {findings}</source>
            <translation>{check}：{findings}</translation>
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
        <name>CutPicture</name>
        <message>
            <source>{shared} parts work for every token, the router chooses among {routed}</source>
            <translation>{shared} 个部分处理所有词元，路由器在其余 {routed} 个中选择</translation>
        </message>
        <message>
            <source>one network for all</source>
            <translation>所有词元共用一个网络</translation>
        </message>
        <message>
            <source>{n} shared</source>
            <translation>{n} 个共享</translation>
        </message>
        <message>
            <source>{n} that the router chooses among</source>
            <translation>{n} 个由路由器选择</translation>
        </message>
    </context>
    <context>
        <name>CutView</name>
        <message>
            <source>English, Chinese and code that come with Colibri</source>
            <translation>Colibri 自带的英文、中文和代码</translation>
        </message>
        <message>
            <source>Cut and measure</source>
            <translation>切分并测量</translation>
        </message>
        <message>
            <source>Back</source>
            <translation>返回</translation>
        </message>
        <message>
            <source>Choose…</source>
            <translation>选择…</translation>
        </message>
        <message>
            <source>Choose a text</source>
            <translation>选择文本</translation>
        </message>
        <message>
            <source>Parts of each network</source>
            <translation>每个网络的部分数</translation>
        </message>
        <message>
            <source>More parts route finer and cost more time</source>
            <translation>部分越多，路由越细，耗时越长</translation>
        </message>
        <message>
            <source>Shared by all tokens</source>
            <translation>所有词元共享</translation>
        </message>
        <message>
            <source>The parts that are busiest on the text; a quarter of them is a good choice</source>
            <translation>在文本上最活跃的部分；取四分之一较为合适</translation>
        </message>
        <message>
            <source>First layers left whole</source>
            <translation>保持完整的前几层</translation>
        </message>
        <message>
            <source>What the first layers lose is never made up for</source>
            <translation>前几层的损失无法弥补</translation>
        </message>
        <message>
            <source>Text to watch it on</source>
            <translation>用于观察的文本</translation>
        </message>
        <message>
            <source>Parts that work at the same time become one expert</source>
            <translation>同时工作的部分合为一个专家</translation>
        </message>
        <message>
            <source>Save as</source>
            <translation>保存为</translation>
        </message>
        <message>
            <source>Parameters</source>
            <translation>参数量</translation>
        </message>
        <message>
            <source>Layers</source>
            <translation>层数</translation>
        </message>
        <message>
            <source>Neurons of a network</source>
            <translation>每个网络的神经元</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>大小</translation>
        </message>
        <message>
            <source>There is no such text. Choose another, or leave the field empty.</source>
            <translation>没有这个文本。请选择其他文本，或留空。</translation>
        </message>
    </context>
    <context>
        <name>DecideView</name>
        <message>
            <source>How many experts for each token?</source>
            <translation>每个词元用多少个专家？</translation>
        </message>
        <message>
            <source>Make the model</source>
            <translation>生成模型</translation>
        </message>
        <message>
            <source>Discard</source>
            <translation>放弃</translation>
        </message>
        <message>
            <source>Measured on text that the cutting has not seen: the dense model has a perplexity of {perplexity} on it. Divergence says how far the next token&apos;s probabilities are from the dense model&apos;s. {shared} shared experts work besides. You can choose again whenever you open the model.</source>
            <translation>在切分时未见过的文本上测得：稠密模型在其上的困惑度为 {perplexity}。散度表示下一个词元的概率与稠密模型相差多远。另有 {shared} 个共享专家始终工作。每次打开模型时都可以重新选择。</translation>
        </message>
        <message>
            <source>With {k} experts this is a demonstration: it shows routing, but answers are clearly worse than the dense model&apos;s. It will be named so.</source>
            <translation>使用 {k} 个专家时只是演示：可以看到路由，但回答明显不如稠密模型。模型名称会注明这一点。</translation>
        </message>
    </context>
    <context>
        <name>DemonstrationCard</name>
        <message>
            <source>Show the steps</source>
            <translation>显示步骤</translation>
        </message>
        <message>
            <source>Choose how…</source>
            <translation>选择方式…</translation>
        </message>
        <message>
            <source>{name}, carved (demonstration)</source>
            <translation>{name}，已切分（演示）</translation>
        </message>
        <message>
            <source>It is on this machine: chat with it, and watch its experts.</source>
            <translation>它已在这台电脑上：与它对话，观察它的专家。</translation>
        </message>
        <message>
            <source>Chat with it</source>
            <translation>开始对话</translation>
        </message>
        <message>
            <source>Try again</source>
            <translation>重试</translation>
        </message>
        <message>
            <source>See experts at work: this model can be cut into 12 experts and 4 shared ones here, in some minutes and without a download. You will see routing live; the answers are worse than this model&apos;s, and how much is measured.</source>
            <translation>观察专家如何工作：这个模型可以在本机用几分钟切分为 12 个专家和 4 个共享专家，无需下载。您会实时看到路由；它的回答不如本模型，差多少会测量出来。</translation>
        </message>
        <message>
            <source>Make it</source>
            <translation>生成</translation>
        </message>
        <message>
            <source>Reading text, and watching every neuron</source>
            <translation>正在阅读文本，观察每个神经元</translation>
        </message>
        <message>
            <source>Cutting the networks, and fitting the routers</source>
            <translation>正在切分网络，拟合路由器</translation>
        </message>
        <message>
            <source>Measuring what each number of experts costs</source>
            <translation>正在测量每种专家数量的代价</translation>
        </message>
        <message>
            <source>Writing the file</source>
            <translation>正在写入文件</translation>
        </message>
        <message>
            <source>Stopping…</source>
            <translation>正在停止…</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>取消</translation>
        </message>
    </context>
    <context>
        <name>DenseView</name>
        <message>
            <source>A carving was interrupted</source>
            <translation>有一项切分被中断</translation>
        </message>
        <message>
            <source>Make a model with experts of one without</source>
            <translation>把没有专家的模型变成有专家的模型</translation>
        </message>
        <message>
            <source>Each feed-forward network of a dense model is cut into parts: some work for every token, and a router chooses among the others. Nothing is trained. With all parts on, the model computes what it did; with fewer it loses, and before you decide you see measured how much. It shows how routing works; for daily use take a model that was trained with experts.</source>
            <translation>稠密模型的每个前馈网络被切分为若干部分：一些处理所有词元，其余由路由器选择。不做任何训练。启用全部部分时，模型的计算与原来相同；启用较少时会有损失，在您决定之前会看到测得的损失。它用来展示路由如何工作；日常使用请选择训练时就带有专家的模型。</translation>
        </message>
        <message>
            <source>Dense models on this machine</source>
            <translation>本机的稠密模型</translation>
        </message>
        <message>
            <source>Choose another file…</source>
            <translation>选择其他文件…</translation>
        </message>
        <message>
            <source>Looking through the models…</source>
            <translation>正在查看模型…</translation>
        </message>
        <message>
            <source>None of your models can be carved. It takes a dense model as a GGUF file (Llama, SmolLM2, Mistral, TinyLlama, Qwen2.5, Qwen3 and others); the starter model is one.</source>
            <translation>您的模型都不能切分。需要 GGUF 格式的稠密模型（Llama、SmolLM2、Mistral、TinyLlama、Qwen2.5、Qwen3 等）；入门模型就是其中之一。</translation>
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
        <message>
            <source>How to read this panel</source>
            <translation>如何看懂这个面板</translation>
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
        <name>ExpertChoice</name>
        <message>
            <source>Experts for each token</source>
            <translation>每个词元的专家数</translation>
        </message>
        <message>
            <source>The model&apos;s own</source>
            <translation>模型自身的数量</translation>
        </message>
        <message>
            <source>Load again</source>
            <translation>重新加载</translation>
        </message>
        <message>
            <source>Measured when it was carved, against the dense model. The file says {k}.</source>
            <translation>切分时与稠密模型对比测得。文件中为 {k} 个。</translation>
        </message>
        <message>
            <source>The number it was trained with.</source>
            <translation>训练时使用的数量。</translation>
        </message>
        <message>
            <source>It was trained with {k}: fewer are faster, and worse.</source>
            <translation>训练时使用 {k} 个：更少则更快，但更差。</translation>
        </message>
        <message>
            <source>It was trained with {k}: more are slower, and seldom better.</source>
            <translation>训练时使用 {k} 个：更多则更慢，且很少更好。</translation>
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
            <source>{layers} layers with {experts} experts each · {calls} calls</source>
            <translation>{layers} 层，每层 {experts} 个专家 · {calls} 次调用</translation>
        </message>
        <message>
            <source>In memory, {size}</source>
            <translation>在内存中，{size}</translation>
        </message>
        <message>
            <source>Not in memory, {size} to read</source>
            <translation>不在内存中，需读取 {size}</translation>
        </message>
        <message>
            <source>Each cell is an expert; a column or row of them is a layer. The stronger its colour, the more often it was called in the last seconds; orange are the experts of the newest token. Point at a cell for its figures; click it, or use the arrow keys and Enter, to see at which tokens it was called. An evenly coloured map means that the model spreads its work; a few strong cells are its specialists for what is being talked about. The context menu of an answer shows which experts served it.</source>
            <translation>每个格子是一个专家，一列或一行是一层。颜色越强，最近几秒被调用得越频繁；橙色是最新词元的专家。指向格子可看数字；单击，或用方向键加回车，可看它在哪些词元上被调用。颜色均匀说明模型分散了工作；少数颜色强的格子是当前话题的专长专家。在回答的右键菜单中可查看由哪些专家处理。</translation>
        </message>
        <message>
            <source>It is a dense model: every token passes through all of its weights. To see experts at work, make a demonstration of the starter: one click in the page Models.</source>
            <translation>这是稠密模型：每个词元都经过它的全部权重。要观察专家如何工作，可用入门模型制作一个演示：在“模型”页面点击一次即可。</translation>
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
        <message>
            <source>{size}/s</source>
            <translation>{size}/秒</translation>
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
{count} calls, {share} % of the layer&apos;s</source>
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
        <message>
            <source>Show or hide latency, time, cache, memory, bandwidth, cores</source>
            <translation>显示或隐藏延迟、时间、缓存、内存、带宽、核心</translation>
        </message>
        <message>
            <source>System check</source>
            <translation>系统检查</translation>
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
        <message>
            <source>Experts of the selection</source>
            <translation>所选内容的专家</translation>
        </message>
        <message>
            <source>Experts of this answer</source>
            <translation>此回答的专家</translation>
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
        <name>Recommendation</name>
        <message>
            <source>What you choose here counts for every model instead.</source>
            <translation>在这里选择的值将改为用于所有模型。</translation>
        </message>
        <message>
            <source>Every model is asked as is best for it.</source>
            <translation>每个模型都按最适合它的方式提问。</translation>
        </message>
        <message>
            <source>Nothing is recommended for {model}: these are Colibri's own values.</source>
            <translation>{model} 没有推荐值：这些是 Colibri 自己的值。</translation>
        </message>
        <message>
            <source>The file of {model} recommends {values}.</source>
            <translation>{model} 的文件推荐{values}。</translation>
        </message>
        <message>
            <source>The publisher of {family} recommends {values}.</source>
            <translation>{family} 的发布者推荐{values}。</translation>
        </message>
        <message>
            <source>A model as small as {model} does best with {values}.</source>
            <translation>像 {model} 这样小的模型最适合{values}。</translation>
        </message>
        <message>
            <source>temperature {n}</source>
            <translation>温度 {n}</translation>
        </message>
        <message>
            <source>top k {n}</source>
            <translation>Top k {n}</translation>
        </message>
        <message>
            <source>top p {n}</source>
            <translation>Top p {n}</translation>
        </message>
        <message>
            <source>min p {n}</source>
            <translation>Min p {n}</translation>
        </message>
        <message>
            <source>repetition penalty {n}</source>
            <translation>重复惩罚 {n}</translation>
        </message>
        <message>
            <source>, </source>
            <translation>、</translation>
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
        <message>
            <source>Use what is recommended</source>
            <translation>使用推荐值</translation>
        </message>
        <message>
            <source>Forget these five values; each model is asked as is best for it</source>
            <translation>忘掉这五个值；每个模型都按最适合它的方式提问</translation>
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
        <message>
            <source>Convert a model…</source>
            <translation>转换模型…</translation>
        </message>
        <message>
            <source>Manage models</source>
            <translation>管理模型</translation>
        </message>
        <message>
            <source>System check</source>
            <translation>系统检查</translation>
        </message>
    </context>
    <context>
        <name>Navigation</name>
        <message>
            <source>Pages</source>
            <translation>页面</translation>
        </message>
    </context>
    <context>
        <name>Bands</name>
        <message>
            <source>experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>attention</source>
            <translation>注意力</translation>
        </message>
        <message>
            <source>router</source>
            <translation>路由</translation>
        </message>
        <message>
            <source>norms and other</source>
            <translation>归一化及其他</translation>
        </message>
        <message>
            <source>output</source>
            <translation>输出</translation>
        </message>
        <message>
            <source>sampling</source>
            <translation>采样</translation>
        </message>
        <message>
            <source>waiting for disk</source>
            <translation>等待磁盘</translation>
        </message>
        <message>
            <source>waiting at barriers</source>
            <translation>同步等待</translation>
        </message>
        <message>
            <source>scheduling and text</source>
            <translation>调度与文本</translation>
        </message>
        <message>
            <source>feed forward</source>
            <translation>前馈</translation>
        </message>
    </context>
    <context>
        <name>BandwidthChart</name>
        <message>
            <source>Gigabytes of weights read per second</source>
            <translation>每秒读取的权重（GB）</translation>
        </message>
        <message>
            <source>limit {rate} GB/s</source>
            <translation>上限 {rate} GB/s</translation>
        </message>
        <message>
            <source>{rate} GB/s</source>
            <translation>{rate} GB/s</translation>
        </message>
    </context>
    <context>
        <name>BandwidthPanel</name>
        <message>
            <source>Memory bandwidth</source>
            <translation>内存带宽</translation>
        </message>
        <message>
            <source>Every token needs all weights that serve it, once, from memory. The line is how many gigabytes of them the engine read per second. The dashed line is what this machine&apos;s memory can give, once measured. A line close to it: only smaller weights or faster memory would help. Far below it: the processor is the limit.</source>
            <translation>每个词元都要从内存中把为它服务的全部权重读一遍。曲线是引擎每秒读取了多少 GB 权重；虚线是测得的本机内存上限。曲线接近虚线：只有更小的权重或更快的内存才有帮助；远低于虚线：处理器是瓶颈。</translation>
        </message>
        <message>
            <source>Measure this machine&apos;s limit</source>
            <translation>测量本机上限</translation>
        </message>
        <message>
            <source>Reads memory at full speed for a moment; best while nothing else runs</source>
            <translation>短时间全速读取内存；最好在没有其他程序运行时进行</translation>
        </message>
        <message>
            <source>{rate} GB/s of weights</source>
            <translation>权重 {rate} GB/s</translation>
        </message>
        <message>
            <source>{share} % of what the memory can give</source>
            <translation>达到内存上限的 {share} %</translation>
        </message>
        <message>
            <source>There is too little free memory to measure with.</source>
            <translation>空闲内存太少，无法测量。</translation>
        </message>
        <message>
            <source>more than the memory can give: much of it stays in the processor&apos;s cache</source>
            <translation>超过内存所能提供：很多数据留在处理器缓存中</translation>
        </message>
    </context>
    <context>
        <name>CacheChart</name>
        <message>
            <source>Experts read from the file for each token</source>
            <translation>每个词元从文件读取的专家数</translation>
        </message>
        <message>
            <source>read</source>
            <translation>读取</translation>
        </message>
        <message>
            <source>Every expert was in memory</source>
            <translation>所有专家都已在内存中</translation>
        </message>
        <message>
            <source>{found} experts were in memory, {read} were read ({size})</source>
            <translation>{found} 个专家已在内存中，读取了 {read} 个（{size}）</translation>
        </message>
        <message>
            <source>experts read per token</source>
            <translation>每个词元读取的专家</translation>
        </message>
    </context>
    <context>
        <name>CachePanel</name>
        <message>
            <source>Expert cache</source>
            <translation>专家缓存</translation>
        </message>
        <message>
            <source>Each column is one token, as high as the number of experts that had to be read from the file for it; no column means that all were in memory. After a model is opened each expert is read once. Columns that go on mean that the cache is too small for this conversation: each read makes its token late.</source>
            <translation>每一列是一个词元，高度是为它从文件读取的专家数；没有列表示全部已在内存中。模型打开后，每个专家会被读取一次。若列持续出现，说明缓存对这段对话来说太小：每次读取都会让词元变慢。</translation>
        </message>
        <message>
            <source>While experts come from the disk, those that the next layer will probably need are asked for in advance: how many of the needed ones had been foreseen, and how many were asked for in vain, stands below.</source>
            <translation>当专家来自磁盘时，会预先请求下一层可能需要的专家：下方显示所需专家中有多少被预见，以及有多少请求是徒劳的。</translation>
        </message>
        <message>
            <source>{recall} % foreseen · {asked} asked for ahead, {wasted} % in vain</source>
            <translation>预见 {recall} % · 预先请求 {asked} 个，其中 {wasted} % 未用到</translation>
        </message>
        <message>
            <source>{share} % found in memory · {read} read, {size}, {time} waited · {evicted} gave way</source>
            <translation>{share} % 在内存中命中 · 读取 {read} 个，{size}，等待 {time} · 换出 {evicted} 个</translation>
        </message>
        <message>
            <source>It is a dense model: all of its weights stay in memory, and nothing is read for a token.</source>
            <translation>这是稠密模型：所有权重都在内存中，处理词元时无需读取。</translation>
        </message>
        <message>
            <source>This model has no experts</source>
            <translation>此模型没有专家</translation>
        </message>
    </context>
    <context>
        <name>CoresPanel</name>
        <message>
            <source>Cores</source>
            <translation>核心</translation>
        </message>
        <message>
            <source>Above, what each of the engine&apos;s workers did in the last second: busy with the model, waiting for the other workers while a token was computed, or without work. Below, how busy each core of the machine is with all programs together. Busy cores while no answer is written belong to other programs.</source>
            <translation>上方：引擎的每个工作线程在最近一秒里做了什么：计算模型、在计算词元时等待其他线程，或者空闲。下方：本机每个核心被所有程序占用的程度。没有回答在生成时，忙碌的核心属于其他程序。</translation>
        </message>
        <message>
            <source>Load of workers and cores</source>
            <translation>工作线程与核心的负载</translation>
        </message>
        <message>
            <source>Worker {number}</source>
            <translation>线程 {number}</translation>
        </message>
        <message>
            <source>Core {number}</source>
            <translation>核心 {number}</translation>
        </message>
        <message>
            <source>The machine&apos;s cores: all programs</source>
            <translation>本机核心：所有程序</translation>
        </message>
        <message>
            <source>This machine does not tell its frequency</source>
            <translation>本机不提供频率信息</translation>
        </message>
        <message>
            <source>{ghz} GHz now</source>
            <translation>当前 {ghz} GHz</translation>
        </message>
        <message>
            <source>busy</source>
            <translation>忙碌</translation>
        </message>
        <message>
            <source>waiting for others</source>
            <translation>等待其他线程</translation>
        </message>
        <message>
            <source>The engine&apos;s workers</source>
            <translation>引擎的工作线程</translation>
        </message>
        <message>
            <source>workers are not pinned, they may run on cores {cpus}</source>
            <translation>工作线程未绑定，可在核心 {cpus} 上运行</translation>
        </message>
    </context>
    <context>
        <name>ExpertHistory</name>
        <message>
            <source>History of the pinned expert</source>
            <translation>所固定专家的历史</translation>
        </message>
        <message>
            <source>Layer {layer}, expert {expert}: called by {n} of the last {all} tokens</source>
            <translation>第 {layer} 层，专家 {expert}：最近 {all} 个词元中有 {n} 个调用了它</translation>
        </message>
    </context>
    <context>
        <name>LatencyHistogram</name>
        <message>
            <source>How many tokens took how long</source>
            <translation>各耗时的词元数</translation>
        </message>
        <message>
            <source>tokens</source>
            <translation>词元</translation>
        </message>
        <message>
            <source>ms for a token</source>
            <translation>每词元毫秒</translation>
        </message>
        <message>
            <source>{n} tokens took {low} to {high} ms</source>
            <translation>{n} 个词元耗时 {low} 至 {high} 毫秒</translation>
        </message>
    </context>
    <context>
        <name>LatencyPanel</name>
        <message>
            <source>Latency</source>
            <translation>延迟</translation>
        </message>
        <message>
            <source>Above: how long each token of the answers took; an orange flag marks where an answer began, with the time to its first token. The dotted lines are the median (grey), the 95th (yellow) and the 99th percentile (red). In the middle: how many tokens took how long. A narrow hill is a steady machine; a long tail to the right means that something held single tokens up. Below: how fast prompts were read, step by step.</source>
            <translation>上方：回答中每个词元的耗时；橙色旗标表示一个回答的开始，并标出首词元时间。虚线为中位数（灰）、第 95 百分位（黄）和第 99 百分位（红）。中间：各耗时的词元数。窄峰表示机器稳定；右侧长尾表示个别词元被拖住。下方：每一步读取提示的速度。</translation>
        </message>
        <message>
            <source>median {p50} ms · 95 % within {p95} ms · 99 % within {p99} ms</source>
            <translation>中位 {p50} 毫秒 · 95 % 在 {p95} 毫秒内 · 99 % 在 {p99} 毫秒内</translation>
        </message>
        <message>
            <source>prompts {rate}</source>
            <translation>提示 {rate}</translation>
        </message>
        <message>
            <source>first token {time}</source>
            <translation>首个词元 {time}</translation>
        </message>
    </context>
    <context>
        <name>LatencySeries</name>
        <message>
            <source>Milliseconds of each token</source>
            <translation>每个词元的毫秒数</translation>
        </message>
        <message>
            <source>ms</source>
            <translation>毫秒</translation>
        </message>
        <message>
            <source>Token {number} of {all}: {ms} ms</source>
            <translation>第 {number} / {all} 个词元：{ms} 毫秒</translation>
        </message>
    </context>
    <context>
        <name>LiveDocks</name>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>Latency</source>
            <translation>延迟</translation>
        </message>
        <message>
            <source>Where the time went</source>
            <translation>时间去向</translation>
        </message>
        <message>
            <source>Expert cache</source>
            <translation>专家缓存</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <source>Memory bandwidth</source>
            <translation>内存带宽</translation>
        </message>
        <message>
            <source>Cores</source>
            <translation>核心</translation>
        </message>
    </context>
    <context>
        <name>LivePanel</name>
        <message>
            <source>No model is loaded</source>
            <translation>尚未加载模型</translation>
        </message>
        <message>
            <source>Its figures will appear here.</source>
            <translation>它的数据会显示在这里。</translation>
        </message>
        <message>
            <source>Nothing to show yet</source>
            <translation>暂无数据</translation>
        </message>
        <message>
            <source>Ask something: every token is measured.</source>
            <translation>提个问题吧：每个词元都会被测量。</translation>
        </message>
    </context>
    <context>
        <name>MemoryPanel</name>
        <message>
            <source>reserved huge pages</source>
            <translation>预留大页</translation>
        </message>
        <message>
            <source>transparent huge pages</source>
            <translation>透明大页</translation>
        </message>
        <message>
            <source>4 KiB pages</source>
            <translation>4 KiB 页</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <source>First what the model takes, by kind: its resident weights, the slabs for experts, keys and values of the conversations, and working buffers. Then the same by the size of the pages that it lies on: on huge pages the processor finds its way faster. Last the whole machine: when little is free, others are swapped out.</source>
            <translation>先是模型占用的内存，按种类分：常驻权重、专家槽、对话的键和值、工作缓冲区。然后按所在页面的大小分：在大页上处理器寻址更快。最后是整台机器：空闲内存很少时，其他程序会被换出。</translation>
        </message>
        <message>
            <source>Memory by kind</source>
            <translation>按种类的内存</translation>
        </message>
        <message>
            <source>resident weights</source>
            <translation>常驻权重</translation>
        </message>
        <message>
            <source>expert slabs</source>
            <translation>专家槽</translation>
        </message>
        <message>
            <source>keys and values</source>
            <translation>键和值</translation>
        </message>
        <message>
            <source>buffers</source>
            <translation>缓冲区</translation>
        </message>
        <message>
            <source>The model, by kind</source>
            <translation>模型，按种类</translation>
        </message>
        <message>
            <source>The same, by page size</source>
            <translation>同上，按页面大小</translation>
        </message>
        <message>
            <source>This machine</source>
            <translation>本机</translation>
        </message>
        <message>
            <source>Colibri</source>
            <translation>Colibri</translation>
        </message>
        <message>
            <source>other programs</source>
            <translation>其他程序</translation>
        </message>
        <message>
            <source>available</source>
            <translation>可用</translation>
        </message>
        <message>
            <source>{size} planned</source>
            <translation>计划 {size}</translation>
        </message>
        <message>
            <source>{used} of {all} positions of keys and values in use</source>
            <translation>键和值已用 {used} / {all} 个位置</translation>
        </message>
    </context>
    <context>
        <name>PromptSpeed</name>
        <message>
            <source>Speed of reading prompts</source>
            <translation>读取提示的速度</translation>
        </message>
        <message>
            <source>{n} tokens of a prompt at {rate}</source>
            <translation>提示的 {n} 个词元，{rate}</translation>
        </message>
        <message>
            <source>prompts: tokens per second</source>
            <translation>提示：每秒词元</translation>
        </message>
    </context>
    <context>
        <name>StackedBands</name>
        <message>
            <source>Where each token&apos;s time went, in milliseconds</source>
            <translation>每个词元的时间去向（毫秒）</translation>
        </message>
        <message>
            <source>ms</source>
            <translation>毫秒</translation>
        </message>
        <message>
            <source>{band}: {ms} ms</source>
            <translation>{band}：{ms} 毫秒</translation>
        </message>
        <message>
            <source>{ms} ms in all</source>
            <translation>共 {ms} 毫秒</translation>
        </message>
    </context>
    <context>
        <name>TimePanel</name>
        <message>
            <source>Where the time went</source>
            <translation>时间去向</translation>
        </message>
        <message>
            <source>Waiting for the disk: a larger expert cache would help.</source>
            <translation>在等待磁盘：更大的专家缓存会有帮助。</translation>
        </message>
        <message>
            <source>Cores wait for each other: close other programs, or use fewer threads.</source>
            <translation>核心在互相等待：请关闭其他程序，或减少线程数。</translation>
        </message>
        <message>
            <source>The router takes the most: several answers at once would share it.</source>
            <translation>路由耗时最多：同时生成多个回答可以分摊它。</translation>
        </message>
        <message>
            <source>The model&apos;s own work sets the pace: memory or processor are the limit.</source>
            <translation>速度由模型自身的计算决定：内存或处理器是瓶颈。</translation>
        </message>
        <message>
            <source>Each column is one token, as high as the milliseconds that it took; the colours say what the processor did in that time. Mostly experts, feed forward and attention: the model is being computed, and memory or processor set the pace. Much waiting at barriers: cores wait for each other, so other programs are in the way or there are too many threads. Waiting for disk: experts are being read, and a larger cache would help.</source>
            <translation>每一列是一个词元，高度是它耗费的毫秒数；颜色表示处理器在这段时间里做什么。主要是专家、前馈和注意力：正在计算模型，速度由内存或处理器决定。同步等待很多：核心互相等待，可能有其他程序干扰或线程过多。等待磁盘：正在读取专家，更大的缓存会有帮助。</translation>
        </message>
        <message>
            <source>Choosing tokens and turning them into text takes the most: the model itself is quick.</source>
            <translation>大部分时间用于选择词元并转换为文本：模型本身很快。</translation>
        </message>
    </context>
    <context>
        <name>ChooseView</name>
        <message>
            <source>A model file in the GGUF format is made of it: one file that Colibri and other programs open at once. The original is only read, and nothing leaves this machine.</source>
            <translation>它会被制成一个 GGUF 格式的模型文件：单个文件，Colibri 和其他程序都能直接打开。原文件只会被读取，任何内容都不会离开本机。</translation>
        </message>
        <message>
            <source>Found on this machine</source>
            <translation>在本机上找到的</translation>
        </message>
        <message>
            <source>A conversion was interrupted</source>
            <translation>有一项转换被中断</translation>
        </message>
        <message>
            <source>Or cut a dense model into experts…</source>
            <translation>或将稠密模型切分为专家…</translation>
        </message>
        <message>
            <source>A model without experts becomes one with experts, so that you can see them work</source>
            <translation>把没有专家的模型变成有专家的模型，让您看到专家如何工作</translation>
        </message>
    </context>
    <context>
        <name>ConversionTask</name>
        <message>
            <source>Converting {name}</source>
            <translation>正在转换 {name}</translation>
        </message>
    </context>
    <context>
        <name>ConvertPage</name>
        <message>
            <source>All files (*)</source>
            <translation>所有文件 (*)</translation>
        </message>
        <message>
            <source>Chat</source>
            <translation>对话</translation>
        </message>
        <message>
            <source>Choose</source>
            <translation>选择</translation>
        </message>
        <message>
            <source>Choose a model&apos;s file</source>
            <translation>选择模型文件</translation>
        </message>
        <message>
            <source>Choose a model&apos;s folder</source>
            <translation>选择模型文件夹</translation>
        </message>
        <message>
            <source>Convert</source>
            <translation>转换</translation>
        </message>
        <message>
            <source>Converting {name}</source>
            <translation>正在转换 {name}</translation>
        </message>
        <message>
            <source>Plan</source>
            <translation>计划</translation>
        </message>
        <message>
            <source>Verify</source>
            <translation>校验</translation>
        </message>
        <message>
            <source>Check the model</source>
            <translation>检查模型</translation>
        </message>
        <message>
            <source>Calibrate</source>
            <translation>校准</translation>
        </message>
        <message>
            <source>Write the file</source>
            <translation>写入文件</translation>
        </message>
        <message>
            <source>Read it back</source>
            <translation>读回</translation>
        </message>
        <message>
            <source>Compare it with the source</source>
            <translation>与来源比较</translation>
        </message>
        <message>
            <source>You can go on chatting meanwhile. If Colibri is closed, the conversion goes on at the next start where it was; nothing stays of one that is cancelled.</source>
            <translation>您可以继续对话。如果关闭 Colibri，下次启动时转换会从原处继续；取消后不会留下任何文件。</translation>
        </message>
        <message>
            <source>Models (*.safetensors *.gguf)</source>
            <translation>模型 (*.safetensors *.gguf)</translation>
        </message>
        <message>
            <source>Choose a text for calibration</source>
            <translation>选择用于校准的文本</translation>
        </message>
        <message>
            <source>It could not be compared with its source: {reason}</source>
            <translation>无法与来源比较：{reason}</translation>
        </message>
        <message>
            <source>The model is ready</source>
            <translation>模型已就绪</translation>
        </message>
        <message>
            <source>Read back</source>
            <translation>读回</translation>
        </message>
        <message>
            <source>Convert another</source>
            <translation>再转换一个</translation>
        </message>
        <message>
            <source>All {n} tensors, {size}, were read back and equal the source to the last bit.</source>
            <translation>全部 {n} 个张量（{size}）均已读回，与来源逐位相同。</translation>
        </message>
        <message>
            <source>All {n} tensors were read back; {size} of their values were compared with the source.</source>
            <translation>全部 {n} 个张量均已读回，其中 {size} 的数值已与来源比较。</translation>
        </message>
        <message>
            <source>{n} tensors, equal to the last bit</source>
            <translation>{n} 个张量，逐位相同</translation>
        </message>
        <message>
            <source>{n} tensors, as planned</source>
            <translation>{n} 个张量，与计划一致</translation>
        </message>
    </context>
    <context>
        <name>DropZone</name>
        <message>
            <source>Choose a file…</source>
            <translation>选择文件…</translation>
        </message>
        <message>
            <source>Choose a folder…</source>
            <translation>选择文件夹…</translation>
        </message>
        <message>
            <source>Drop a model&apos;s folder here</source>
            <translation>将模型文件夹拖到这里</translation>
        </message>
        <message>
            <source>As it is published: safetensors files, config.json and the tokenizer&apos;s files. Or a GGUF file, to make it smaller</source>
            <translation>按发布时的样子：safetensors 文件、config.json 和分词器文件。也可以是 GGUF 文件，将其变小</translation>
        </message>
    </context>
    <context>
        <name>EndView</name>
        <message>
            <source>Back to the plan</source>
            <translation>返回计划</translation>
        </message>
        <message>
            <source>Cancelled</source>
            <translation>已取消</translation>
        </message>
        <message>
            <source>Chat with it</source>
            <translation>开始对话</translation>
        </message>
        <message>
            <source>Choose another</source>
            <translation>另选一个</translation>
        </message>
        <message>
            <source>Show in the file manager</source>
            <translation>在文件管理器中显示</translation>
        </message>
        <message>
            <source>Try again</source>
            <translation>重试</translation>
        </message>
    </context>
    <context>
        <name>InlineNotice</name>
        <message>
            <source>Copy the whole message</source>
            <translation>复制完整信息</translation>
        </message>
    </context>
    <context>
        <name>LossRow</name>
        <message>
            <source>As the dense model</source>
            <translation>与稠密模型相同</translation>
        </message>
        <message>
            <source>Close to it</source>
            <translation>接近稠密模型</translation>
        </message>
        <message>
            <source>Demonstration</source>
            <translation>仅供演示</translation>
        </message>
        <message>
            <source>Broken</source>
            <translation>已不可用</translation>
        </message>
    </context>
    <context>
        <name>LossTable</name>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>Share of the network</source>
            <translation>占网络比例</translation>
        </message>
        <message>
            <source>Perplexity</source>
            <translation>困惑度</translation>
        </message>
        <message>
            <source>Divergence, nats</source>
            <translation>散度（奈特）</translation>
        </message>
        <message>
            <source>Same next token</source>
            <translation>下一词元相同</translation>
        </message>
        <message>
            <source>Number of experts</source>
            <translation>专家数量</translation>
        </message>
    </context>
    <context>
        <name>MakingPage</name>
        <message>
            <source>Make a model file</source>
            <translation>制作模型文件</translation>
        </message>
        <message>
            <source>Convert</source>
            <translation>转换</translation>
        </message>
        <message>
            <source>Cut into experts</source>
            <translation>切分为专家</translation>
        </message>
    </context>
    <context>
        <name>Management</name>
        <message>
            <source>A conversion is running; wait for it, or cancel it first.</source>
            <translation>正在进行一项转换；请等待它完成，或先取消它。</translation>
        </message>
        <message>
            <source>Chat with it</source>
            <translation>开始对话</translation>
        </message>
        <message>
            <source>Convert</source>
            <translation>转换</translation>
        </message>
        <message>
            <source>{name} is converted</source>
            <translation>{name} 已转换完成</translation>
        </message>
        <message>
            <source>Models</source>
            <translation>模型</translation>
        </message>
        <message>
            <source>A carving is under way; decide about it, or cancel it first.</source>
            <translation>有一项切分正在进行；请先作出决定或取消它。</translation>
        </message>
        <message>
            <source>{name} is made</source>
            <translation>{name} 已生成</translation>
        </message>
        <message>
            <source>The carving is measured</source>
            <translation>切分已测量完毕</translation>
        </message>
        <message>
            <source>Decide</source>
            <translation>决定</translation>
        </message>
    </context>
    <context>
        <name>PlanOptions</name>
        <message>
            <source>As it is shown in lists of models</source>
            <translation>在模型列表中显示的名称</translation>
        </message>
        <message>
            <source>Experts for each token</source>
            <translation>每个词元的专家数</translation>
        </message>
        <message>
            <source>Fewer are faster, and worse: the model was trained with the number given</source>
            <translation>越少越快，但质量越差：模型是按给出的数量训练的</translation>
        </message>
        <message>
            <source>Less than fp32 can choose other experts at times</source>
            <translation>低于 fp32 时偶尔会选到不同的专家</translation>
        </message>
        <message>
            <source>More options</source>
            <translation>更多选项</translation>
        </message>
        <message>
            <source>Name</source>
            <translation>名称</translation>
        </message>
        <message>
            <source>Router precision</source>
            <translation>路由器精度</translation>
        </message>
        <message>
            <source>fp32 (exact)</source>
            <translation>fp32（精确）</translation>
        </message>
        <message>
            <source>Let both read a text, and count how often they agree</source>
            <translation>让两者阅读同一文本，统计一致的次数</translation>
        </message>
        <message>
            <source>Compare with the source</source>
            <translation>与来源比较</translation>
        </message>
        <message>
            <source>The figures are kept in the file. For a large model it takes some minutes</source>
            <translation>结果保存在文件中。大模型需要几分钟</translation>
        </message>
    </context>
    <context>
        <name>PlanView</name>
        <message>
            <source>Architecture</source>
            <translation>架构</translation>
        </message>
        <message>
            <source>Back</source>
            <translation>返回</translation>
        </message>
        <message>
            <source>Context</source>
            <translation>上下文</translation>
        </message>
        <message>
            <source>Convert</source>
            <translation>转换</translation>
        </message>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>Kind of file</source>
            <translation>文件类型</translation>
        </message>
        <message>
            <source>Layers</source>
            <translation>层数</translation>
        </message>
        <message>
            <source>Licence</source>
            <translation>许可证</translation>
        </message>
        <message>
            <source>Parameters</source>
            <translation>参数量</translation>
        </message>
        <message>
            <source>Published as</source>
            <translation>发布格式</translation>
        </message>
        <message>
            <source>Save as</source>
            <translation>保存为</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>大小</translation>
        </message>
        <message>
            <source>This file will need {needed} of memory, and {available} are free. It can be written, but to run it close other programs, choose a smaller kind, or a shorter context in the settings.</source>
            <translation>运行此文件需要 {needed} 内存，当前可用 {available}。文件可以写入，但要运行它，请关闭其他程序、选择更小的类型，或在设置中缩短上下文。</translation>
        </message>
        <message>
            <source>none (a dense model)</source>
            <translation>无（稠密模型）</translation>
        </message>
        <message>
            <source>not said</source>
            <translation>未注明</translation>
        </message>
        <message>
            <source>{n} tokens</source>
            <translation>{n} 个词元</translation>
        </message>
        <message>
            <source>{n}, {k} for each token</source>
            <translation>{n} 个，每个词元用 {k} 个</translation>
        </message>
        <message>
            <source>Calibration</source>
            <translation>校准</translation>
        </message>
        <message>
            <source>Present types</source>
            <translation>当前类型</translation>
        </message>
        <message>
            <source>It is quantised already: what that lost stays lost. Convert the original if you can.</source>
            <translation>它已经量化过：已损失的精度无法恢复。如有可能，请转换原始模型。</translation>
        </message>
        <message>
            <source>It has no chat template: it continues texts rather than answers questions.</source>
            <translation>它没有对话模板：它会续写文本，而不是回答问题。</translation>
        </message>
        <message>
            <source>It names no licence: look on its page what you may do with it.</source>
            <translation>它没有注明许可证：请在其页面上查看您可以如何使用。</translation>
        </message>
        <message>
            <source>Name the text for calibration, or choose another.</source>
            <translation>请给出用于校准的文本，或选择其他方式。</translation>
        </message>
    </context>
    <context>
        <name>Proof</name>
        <message>
            <source>On {n} tokens of text it prefers the same next token as its source at {share} of the positions.</source>
            <translation>在 {n} 个词元的文本上，它在 {share} 的位置上与来源偏好相同的下一个词元。</translation>
        </message>
        <message>
            <source>{own}; the source has {source}</source>
            <translation>{own}；来源为 {source}</translation>
        </message>
        <message>
            <source>{mean} nats; 99 % below {most}</source>
            <translation>{mean} 奈特；99 % 低于 {most}</translation>
        </message>
        <message>
            <source>Same next token</source>
            <translation>下一词元相同</translation>
        </message>
        <message>
            <source>Same experts</source>
            <translation>相同的专家</translation>
        </message>
        <message>
            <source>Perplexity</source>
            <translation>困惑度</translation>
        </message>
        <message>
            <source>Divergence</source>
            <translation>散度</translation>
        </message>
    </context>
    <context>
        <name>RunView</name>
        <message>
            <source>Cancel</source>
            <translation>取消</translation>
        </message>
        <message>
            <source>Progress</source>
            <translation>进度</translation>
        </message>
        <message>
            <source>Stopping…</source>
            <translation>正在停止…</translation>
        </message>
        <message>
            <source>{done} of {total}</source>
            <translation>{done} / {total}</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>日志</translation>
        </message>
    </context>
    <context>
        <name>Stepper</name>
        <message>
            <source>Step {number} of {total}: {name}</source>
            <translation>第 {number} 步，共 {total} 步：{name}</translation>
        </message>
    </context>
    <context>
        <name>TargetRow</name>
        <message>
            <source>Save as</source>
            <translation>保存为</translation>
        </message>
        <message>
            <source>Choose…</source>
            <translation>选择…</translation>
        </message>
        <message>
            <source>Choose where to save</source>
            <translation>选择保存位置</translation>
        </message>
        <message>
            <source>{free} free on this disk</source>
            <translation>此磁盘可用 {free}</translation>
        </message>
        <message>
            <source>{needed} are written; {free} free on this disk</source>
            <translation>将写入 {needed}；此磁盘可用 {free}</translation>
        </message>
        <message>
            <source>Name the file to write.</source>
            <translation>请为要写入的文件命名。</translation>
        </message>
        <message>
            <source>Give the whole path of the file, from the root on.</source>
            <translation>请给出从根目录开始的完整路径。</translation>
        </message>
        <message>
            <source>This is a folder. Name the file to write in it, too.</source>
            <translation>这是一个文件夹，请同时给出其中要写入的文件名。</translation>
        </message>
        <message>
            <source>This file is there already. Choose another name.</source>
            <translation>该文件已存在，请换一个名称。</translation>
        </message>
        <message>
            <source>The disk has {free} free, and {needed} are needed. Free some, choose a smaller kind, or save to another disk.</source>
            <translation>磁盘可用 {free}，需要 {needed}。请腾出空间、选择更小的类型，或保存到其他磁盘。</translation>
        </message>
    </context>
    <context>
        <name>TypeCard</name>
        <message>
            <source>Calculating…</source>
            <translation>正在计算…</translation>
        </message>
        <message>
            <source>Colibri cannot run this kind yet</source>
            <translation>Colibri 尚不能运行此类型</translation>
        </message>
        <message>
            <source>Needs {needed} of memory, {available} are free</source>
            <translation>需要 {needed} 内存，可用 {available}</translation>
        </message>
        <message>
            <source>Recommended</source>
            <translation>推荐</translation>
        </message>
        <message>
            <source>Runs in {needed} of memory</source>
            <translation>运行需 {needed} 内存</translation>
        </message>
        <message>
            <source>{bits} bits per weight</source>
            <translation>每权重 {bits} 位</translation>
        </message>
        <message>
            <source>about {rate}</source>
            <translation>约 {rate}</translation>
        </message>
        <message>
            <source>{rate} or more</source>
            <translation>{rate} 以上</translation>
        </message>
    </context>
    <context>
        <name>TypeChoice</name>
        <message>
            <source>As published, nothing is lost</source>
            <translation>与发布时相同，没有损失</translation>
        </message>
        <message>
            <source>Close to the original</source>
            <translation>接近原模型</translation>
        </message>
        <message>
            <source>Four bits for the experts</source>
            <translation>专家使用四位</translation>
        </message>
        <message>
            <source>Half width, finer steps but a smaller range</source>
            <translation>半精度，步长更细但范围较小</translation>
        </message>
        <message>
            <source>Half width, with the full range</source>
            <translation>半精度，保留完整范围</translation>
        </message>
        <message>
            <source>Hardly to be told from the original</source>
            <translation>几乎与原模型无异</translation>
        </message>
        <message>
            <source>Kind of file</source>
            <translation>文件类型</translation>
        </message>
        <message>
            <source>Simple and fast, less exact</source>
            <translation>简单快速，精度较低</translation>
        </message>
        <message>
            <source>Smaller, a little less exact</source>
            <translation>更小，精度略低</translation>
        </message>
        <message>
            <source>The full width, for comparisons</source>
            <translation>全精度，用于比较</translation>
        </message>
        <message>
            <source>The smallest that is still good</source>
            <translation>效果仍好的最小类型</translation>
        </message>
        <message>
            <source>The usual balance of size and quality</source>
            <translation>大小与质量的常用平衡</translation>
        </message>
        <message>
            <source>Very close to the original</source>
            <translation>非常接近原模型</translation>
        </message>
        <message>
            <source>Other kinds ({n})</source>
            <translation>其他类型（{n}）</translation>
        </message>
    </context>
    <context>
        <name>UnfinishedCard</name>
        <message>
            <source>Discard</source>
            <translation>放弃</translation>
        </message>
        <message>
            <source>Go on</source>
            <translation>继续</translation>
        </message>
    </context>
    <context>
        <name>EmptyModels</name>
        <message>
            <source>Add a folder…</source>
            <translation>添加文件夹…</translation>
        </message>
        <message>
            <source>Convert a model…</source>
            <translation>转换模型…</translation>
        </message>
    </context>
    <context>
        <name>ModelInspector</name>
        <message>
            <source>This is a fault of Colibri; the log has more: {error}</source>
            <translation>这是 Colibri 的故障，详情见日志：{error}</translation>
        </message>
    </context>
    <context>
        <name>ModelList</name>
        <message>
            <source>Models</source>
            <translation>模型</translation>
        </message>
    </context>
    <context>
        <name>ModelRemoval</name>
        <message>
            <source>"{name}" is in the trash</source>
            <translation>“{name}”已移到回收站</translation>
        </message>
        <message>
            <source>Delete for good</source>
            <translation>永久删除</translation>
        </message>
        <message>
            <source>Move to the trash</source>
            <translation>移到回收站</translation>
        </message>
        <message>
            <source>Move {name} to the trash?</source>
            <translation>将 {name} 移到回收站？</translation>
        </message>
        <message>
            <source>Ollama keeps a list of its models. Remove it there, in a terminal:

ollama rm {name}</source>
            <translation>Ollama 有自己的模型列表，请在终端中通过它删除：

ollama rm {name}</translation>
        </message>
        <message>
            <source>The Hugging Face cache keeps a list of its models. Remove it there, in a terminal:

hf cache delete</source>
            <translation>Hugging Face 缓存有自己的模型列表，请在终端中通过它删除：

hf cache delete</translation>
        </message>
        <message>
            <source>There is no trash for this disk</source>
            <translation>此磁盘没有回收站</translation>
        </message>
        <message>
            <source>This model belongs to another program</source>
            <translation>此模型属于其他程序</translation>
        </message>
        <message>
            <source>Undo</source>
            <translation>撤销</translation>
        </message>
        <message>
            <source>{path}

The file can only be deleted for good.</source>
            <translation>{path}

此文件只能永久删除。</translation>
        </message>
        <message>
            <source>{path}

{size} are free again once the trash is emptied.</source>
            <translation>{path}

清空回收站后可释放 {size}。</translation>
        </message>
        <message>
            <source>{path}: {reason}</source>
            <translation>{path}：{reason}</translation>
        </message>
    </context>
    <context>
        <name>ModelView</name>
        <message>
            <source>Always in memory</source>
            <translation>常驻内存</translation>
        </message>
        <message>
            <source>Architecture</source>
            <translation>架构</translation>
        </message>
        <message>
            <source>As its source promises.</source>
            <translation>与来源给出的一致。</translation>
        </message>
        <message>
            <source>Calculating…</source>
            <translation>正在计算…</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>取消</translation>
        </message>
        <message>
            <source>Chat template</source>
            <translation>对话模板</translation>
        </message>
        <message>
            <source>Chat with it</source>
            <translation>开始对话</translation>
        </message>
        <message>
            <source>Checksum</source>
            <translation>校验和</translation>
        </message>
        <message>
            <source>Compute SHA-256</source>
            <translation>计算 SHA-256</translation>
        </message>
        <message>
            <source>Context</source>
            <translation>上下文</translation>
        </message>
        <message>
            <source>Conversations (KV cache)</source>
            <translation>对话（KV 缓存）</translation>
        </message>
        <message>
            <source>Delete…</source>
            <translation>删除…</translation>
        </message>
        <message>
            <source>Details</source>
            <translation>详细信息</translation>
        </message>
        <message>
            <source>Experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>It does not fit: {needed} are needed, {free} are free. Close other programs, choose a shorter context in the settings, or a smaller kind of this model.</source>
            <translation>内存不足：需要 {needed}，可用 {free}。请关闭其他程序、在设置中缩短上下文，或选择此模型的更小类型。</translation>
        </message>
        <message>
            <source>It fits: {needed} of {free} free memory.</source>
            <translation>内存足够：需要 {needed}，可用 {free}。</translation>
        </message>
        <message>
            <source>It is loaded, and takes {needed}; {free} are free besides.</source>
            <translation>已加载，占用 {needed}；另有 {free} 可用。</translation>
        </message>
        <message>
            <source>Layers</source>
            <translation>层数</translation>
        </message>
        <message>
            <source>Licence</source>
            <translation>许可证</translation>
        </message>
        <message>
            <source>Load</source>
            <translation>加载</translation>
        </message>
        <message>
            <source>Make default</source>
            <translation>设为默认</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <source>No longer default</source>
            <translation>取消默认</translation>
        </message>
        <message>
            <source>Parameters</source>
            <translation>参数量</translation>
        </message>
        <message>
            <source>Share of the free memory that the model needs</source>
            <translation>模型所需占可用内存的比例</translation>
        </message>
        <message>
            <source>Show in the file manager</source>
            <translation>在文件管理器中显示</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>大小</translation>
        </message>
        <message>
            <source>The file is not what its source promises: it was damaged or changed. Fetch it again.</source>
            <translation>文件与来源给出的不一致：已损坏或被更改。请重新获取。</translation>
        </message>
        <message>
            <source>This file cannot be used</source>
            <translation>此文件无法使用</translation>
        </message>
        <message>
            <source>Types</source>
            <translation>类型</translation>
        </message>
        <message>
            <source>Unload</source>
            <translation>卸载</translation>
        </message>
        <message>
            <source>Working memory</source>
            <translation>工作内存</translation>
        </message>
        <message>
            <source>loaded</source>
            <translation>已加载</translation>
        </message>
        <message>
            <source>loading</source>
            <translation>正在加载</translation>
        </message>
        <message>
            <source>none</source>
            <translation>无</translation>
        </message>
        <message>
            <source>none (a dense model)</source>
            <translation>无（稠密模型）</translation>
        </message>
        <message>
            <source>not said in the file</source>
            <translation>文件中未注明</translation>
        </message>
        <message>
            <source>opened at the start</source>
            <translation>启动时打开</translation>
        </message>
        <message>
            <source>present</source>
            <translation>有</translation>
        </message>
        <message>
            <source>starter model</source>
            <translation>入门模型</translation>
        </message>
        <message>
            <source>{n} tokens</source>
            <translation>{n} 个词元</translation>
        </message>
        <message>
            <source>{n}, {k} for each token</source>
            <translation>{n} 个，每个词元用 {k} 个</translation>
        </message>
        <message>
            <source>{size} in {n} files</source>
            <translation>{size}，共 {n} 个文件</translation>
        </message>
        <message>
            <source>Cut into experts…</source>
            <translation>切分为专家…</translation>
        </message>
        <message>
            <source>Experts for each token</source>
            <translation>每个词元的专家数</translation>
        </message>
        <message>
            <source>Compared with its source</source>
            <translation>与来源比较</translation>
        </message>
        <message>
            <source>Source</source>
            <translation>来源</translation>
        </message>
        <message>
            <source>Parts of this file contradict each other</source>
            <translation>此文件的各部分互相矛盾</translation>
        </message>
        <message>
            <source>Checks</source>
            <translation>检查</translation>
        </message>
        <message>
            <source>all {n} passed</source>
            <translation>{n} 项全部通过</translation>
        </message>
        <message>
            <source>{passed} of {n} passed</source>
            <translation>{n} 项中有 {passed} 项通过</translation>
        </message>
    </context>
    <context>
        <name>ModelsPage</name>
        <message>
            <source>Add a folder of models…</source>
            <translation>添加模型文件夹…</translation>
        </message>
        <message>
            <source>Add a folder with GGUF files, or convert a published model.</source>
            <translation>添加含有 GGUF 文件的文件夹，或转换一个已发布的模型。</translation>
        </message>
        <message>
            <source>Look for models again</source>
            <translation>重新查找模型</translation>
        </message>
        <message>
            <source>Models</source>
            <translation>模型</translation>
        </message>
        <message>
            <source>No model has all of these words in its name, kind or place.</source>
            <translation>没有模型的名称、类型或位置包含所有这些词。</translation>
        </message>
        <message>
            <source>No models yet</source>
            <translation>还没有模型</translation>
        </message>
        <message>
            <source>Nothing found</source>
            <translation>没有找到</translation>
        </message>
        <message>
            <source>Search models</source>
            <translation>搜索模型</translation>
        </message>
        <message>
            <source>{n} models, {size}</source>
            <translation>{n} 个模型，{size}</translation>
        </message>
        <message>
            <source>1 model, {size}</source>
            <translation>1 个模型，{size}</translation>
        </message>
    </context>
    <context>
        <name>Places</name>
        <message>
            <source>Own folder</source>
            <translation>自己的文件夹</translation>
        </message>
    </context>
    <context>
        <name>FindingBody</name>
        <message>
            <source>Command</source>
            <translation>命令</translation>
        </message>
        <message>
            <source>Copy the command</source>
            <translation>复制命令</translation>
        </message>
        <message>
            <source>Fix…</source>
            <translation>修复…</translation>
        </message>
        <message>
            <source>Undo the change…</source>
            <translation>撤销更改…</translation>
        </message>
        <message>
            <source>Fix: {title}</source>
            <translation>修复：{title}</translation>
        </message>
        <message>
            <source>Undo: {title}</source>
            <translation>撤销：{title}</translation>
        </message>
    </context>
    <context>
        <name>Findings</name>
        <message>
            <source>Processor</source>
            <translation>处理器</translation>
        </message>
        <message>
            <source>Speed of the cores</source>
            <translation>核心速度</translation>
        </message>
        <message>
            <source>Memory pages</source>
            <translation>内存页</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <source>System</source>
            <translation>系统</translation>
        </message>
        <message>
            <source>Storage</source>
            <translation>存储</translation>
        </message>
        <message>
            <source>in order</source>
            <translation>正常</translation>
        </message>
        <message>
            <source>advice</source>
            <translation>建议</translation>
        </message>
        <message>
            <source>problem</source>
            <translation>问题</translation>
        </message>
        <message>
            <source>not available</source>
            <translation>不可用</translation>
        </message>
        <message>
            <source>Problems: {n}</source>
            <translation>问题：{n}</translation>
        </message>
        <message>
            <source>Advice: {n}</source>
            <translation>建议：{n}</translation>
        </message>
        <message>
            <source>In order: {n}</source>
            <translation>正常：{n}</translation>
        </message>
    </context>
    <context>
        <name>SystemCheck</name>
        <message>
            <source>System check</source>
            <translation>系统检查</translation>
        </message>
    </context>
    <context>
        <name>SystemPage</name>
        <message>
            <source>System check</source>
            <translation>系统检查</translation>
        </message>
        <message>
            <source>Check again</source>
            <translation>重新检查</translation>
        </message>
        <message>
            <source>Measure memory and disk</source>
            <translation>测量内存和磁盘</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>取消</translation>
        </message>
        <message>
            <source>Progress of the measurement</source>
            <translation>测量进度</translation>
        </message>
        <message>
            <source>Measuring the disk…</source>
            <translation>正在测量磁盘…</translation>
        </message>
        <message>
            <source>Measuring the memory…</source>
            <translation>正在测量内存…</translation>
        </message>
        <message>
            <source>Looking at this machine…</source>
            <translation>正在查看本机…</translation>
        </message>
        <message>
            <source>The command was copied</source>
            <translation>命令已复制</translation>
        </message>
        <message>
            <source>What was in force before is put back.</source>
            <translation>将恢复之前的设置。</translation>
        </message>
        <message>
            <source>The system will ask for an administrator&apos;s password.</source>
            <translation>系统会要求输入管理员密码。</translation>
        </message>
        <message>
            <source>Why is it slow?</source>
            <translation>为什么慢？</translation>
        </message>
        <message>
            <source>Change it</source>
            <translation>更改</translation>
        </message>
        <message>
            <source>Undo the change</source>
            <translation>撤销更改</translation>
        </message>
    </context>
    <context>
        <name>ComparisonTable</name>
        <message>
            <source>time per token</source>
            <translation>每词元时间</translation>
        </message>
        <message>
            <source>time to first token</source>
            <translation>首词元时间</translation>
        </message>
        <message>
            <source>reading prompts</source>
            <translation>读取提示</translation>
        </message>
        <message>
            <source>weights read</source>
            <translation>读取权重</translation>
        </message>
        <message>
            <source>experts read per token</source>
            <translation>每词元读取的专家</translation>
        </message>
        <message>
            <source>norms</source>
            <translation>归一化</translation>
        </message>
        <message>
            <source>embedding</source>
            <translation>嵌入</translation>
        </message>
        <message>
            <source>feed-forward network</source>
            <translation>前馈网络</translation>
        </message>
        <message>
            <source>Comparison of two recordings</source>
            <translation>两个记录的比较</translation>
        </message>
        <message>
            <source>change</source>
            <translation>变化</translation>
        </message>
        <message>
            <source>{change} % ({low} to {high} %)</source>
            <translation>{change} %（{low} 至 {high} %）</translation>
        </message>
        <message>
            <source>figure</source>
            <translation>数值</translation>
        </message>
        <message>
            <source>none clear ({low} to {high} %)</source>
            <translation>无明显变化（{low} 至 {high} %）</translation>
        </message>
        <message>
            <source>ms</source>
            <translation>毫秒</translation>
        </message>
        <message>
            <source>tok/s</source>
            <translation>词元/秒</translation>
        </message>
    </context>
    <context>
        <name>PerformancePage</name>
        <message>
            <source>Performance</source>
            <translation>性能</translation>
        </message>
        <message>
            <source>Export</source>
            <translation>导出</translation>
        </message>
        <message>
            <source>Recordings</source>
            <translation>记录</translation>
        </message>
        <message>
            <source>A recording holds what the engine did at every token. Start one, ask something, and stop it. Choose one to see it, or two to compare them: before and after a change, for instance.</source>
            <translation>记录保存引擎在每个词元上做了什么。开始记录，提个问题，然后停止。选择一个查看，或选择两个比较，例如更改设置的前后。</translation>
        </message>
        <message>
            <source>Open a recording</source>
            <translation>打开记录</translation>
        </message>
        <message>
            <source>Recordings (*{suffix})</source>
            <translation>记录（*{suffix}）</translation>
        </message>
        <message>
            <source>All files (*)</source>
            <translation>所有文件 (*)</translation>
        </message>
        <message>
            <source>{model} · {n} steps</source>
            <translation>{model} · {n} 步</translation>
        </message>
        <message>
            <source>Chrome trace (JSON)…</source>
            <translation>Chrome 跟踪（JSON）…</translation>
        </message>
        <message>
            <source>Table (CSV)…</source>
            <translation>表格（CSV）…</translation>
        </message>
        <message>
            <source>Picture (PNG)…</source>
            <translation>图片（PNG）…</translation>
        </message>
        <message>
            <source>Picture (SVG)…</source>
            <translation>图片（SVG）…</translation>
        </message>
        <message>
            <source>Export the recording</source>
            <translation>导出记录</translation>
        </message>
        <message>
            <source>Written: {path}</source>
            <translation>已写入：{path}</translation>
        </message>
        <message>
            <source>Measuring</source>
            <translation>正在测量</translation>
        </message>
        <message>
            <source>Measuring: {percent} %</source>
            <translation>正在测量：{percent} %</translation>
        </message>
        <message>
            <source>Stop recording ({n} steps)</source>
            <translation>停止记录（{n} 步）</translation>
        </message>
        <message>
            <source>Record</source>
            <translation>记录</translation>
        </message>
        <message>
            <source>Stop measuring</source>
            <translation>停止测量</translation>
        </message>
        <message>
            <source>Measure speed</source>
            <translation>测量速度</translation>
        </message>
        <message>
            <source>The command was copied</source>
            <translation>命令已复制</translation>
        </message>
        <message>
            <source>None yet</source>
            <translation>暂无</translation>
        </message>
        <message>
            <source>Measured speeds</source>
            <translation>测得的速度</translation>
        </message>
        <message>
            <source>See where the time goes</source>
            <translation>看看时间用在哪里</translation>
        </message>
        <message>
            <source>Medians, with the middle half of all values in brackets; behind a change, within what it truly lies with 95 % certainty. Grey may be chance.</source>
            <translation>中位数，括号内是所有数值的中间一半；变化之后是以 95 % 的把握估计的真实范围。灰色可能出于偶然。</translation>
        </message>
        <message>
            <source>Load a model first</source>
            <translation>请先加载模型</translation>
        </message>
        <message>
            <source>Keeps what the engine does at every token, until you stop it</source>
            <translation>记录引擎在每个词元上做了什么，直到你停止</translation>
        </message>
        <message>
            <source>Reads a prompt and writes an answer a few times; about a minute</source>
            <translation>读取提示并写出回答，重复几次；大约一分钟</translation>
        </message>
        <message>
            <source>Open…</source>
            <translation>打开…</translation>
        </message>
        <message>
            <source>prompt of {n} tokens</source>
            <translation>{n} 个词元的提示</translation>
        </message>
        <message>
            <source>answer of {n} tokens</source>
            <translation>{n} 个词元的回答</translation>
        </message>
    </context>
    <context>
        <name>RecordedView</name>
        <message>
            <source>A recording of Colibri</source>
            <translation>Colibri 的记录</translation>
        </message>
    </context>
    <context>
        <name>CauseRow</name>
        <message>
            <source>Fix…</source>
            <translation>修复…</translation>
        </message>
        <message>
            <source>Command</source>
            <translation>命令</translation>
        </message>
        <message>
            <source>Copy the command</source>
            <translation>复制命令</translation>
        </message>
    </context>
    <context>
        <name>WhyView</name>
        <message>
            <source>Why is it slow?</source>
            <translation>为什么慢？</translation>
        </message>
        <message>
            <source>Close the answer</source>
            <translation>关闭回答</translation>
        </message>
        <message>
            <source>Looking at the check, the model&apos;s plan and the last answer…</source>
            <translation>正在查看检查结果、模型的计划和上一个回答…</translation>
        </message>
    </context>
    <context>
        <name>WhyButton</name>
        <message>
            <source>Why is it slow?</source>
            <translation>为什么慢？</translation>
        </message>
        <message>
            <source>Reads the check, the model&apos;s plan and the last answer, and says what to do first</source>
            <translation>读取检查结果、模型的计划和上一个回答，并说明首先该做什么</translation>
        </message>
    </context>
    <context>
        <name>ThinkingButton</name>
        <message>
            <source>Think briefly</source>
            <translation>简短思考</translation>
        </message>
        <message>
            <source>Think</source>
            <translation>思考</translation>
        </message>
        <message>
            <source>Think long</source>
            <translation>深入思考</translation>
        </message>
        <message>
            <source>The model thinks before it answers</source>
            <translation>模型先思考再回答</translation>
        </message>
        <message>
            <source>The model answers at once</source>
            <translation>模型直接回答</translation>
        </message>
        <message>
            <source>How long the model thinks before it answers</source>
            <translation>模型回答之前思考多久</translation>
        </message>
    </context>
    <context>
        <name>Inside</name>
        <message>
            <source>System check</source>
            <translation>系统检查</translation>
        </message>
        <message>
            <source>Performance</source>
            <translation>性能</translation>
        </message>
    </context>
    <context>
        <name>RoutingSide</name>
        <message>
            <source>Only these words of it</source>
            <translation>仅其中这些词</translation>
        </message>
        <message>
            <source>No answer</source>
            <translation>无回答</translation>
        </message>
        <message>
            <source>{title} · {n} tokens</source>
            <translation>{title} · {n} 个词元</translation>
        </message>
        <message>
            <source>Choose an answer</source>
            <translation>选择一个回答</translation>
        </message>
        <message>
            <source>No answers to look into yet</source>
            <translation>还没有可查看的回答</translation>
        </message>
        <message>
            <source>Answers of this session by models with experts are remembered, the newest 48.</source>
            <translation>会记住本次会话中由带专家的模型写出的最新 48 个回答。</translation>
        </message>
        <message>
            <source>These words are not in the answer</source>
            <translation>回答中没有这些词</translation>
        </message>
        <message>
            <source>The experts of these tokens are not known</source>
            <translation>不知道这些词元由哪些专家处理</translation>
        </message>
        <message>
            <source>Other answers were written in the same steps.</source>
            <translation>同一步骤中还在写其他回答。</translation>
        </message>
        <message>
            <source>layer {layer} expert {expert} ({share} %)</source>
            <translation>第 {layer} 层专家 {expert}（{share} %）</translation>
        </message>
        <message>
            <source>{n} of {all} tokens · {used} of {experts} experts called · {even} % evenly spread</source>
            <translation>{all} 个词元中的 {n} 个 · {experts} 个专家中调用了 {used} 个 · 分布均匀度 {even} %</translation>
        </message>
        <message>
            <source>Most: {experts}</source>
            <translation>最多：{experts}</translation>
        </message>
        <message>
            <source>Least, of those called: {experts}</source>
            <translation>被调用者中最少：{experts}</translation>
        </message>
    </context>
    <context>
        <name>RoutingWindow</name>
        <message>
            <source>Experts of answers</source>
            <translation>各回答的专家</translation>
        </message>
        <message>
            <source>First answer</source>
            <translation>第一个回答</translation>
        </message>
        <message>
            <source>Second answer</source>
            <translation>第二个回答</translation>
        </message>
        <message>
            <source>These answers are of models with different experts.</source>
            <translation>这些回答来自专家不同的模型。</translation>
        </message>
        <message>
            <source>{share} % of their calls go to the same experts.</source>
            <translation>它们有 {share} % 的调用落在相同的专家上。</translation>
        </message>
        <message>
            <source>The stronger a cell&apos;s colour, the more calls of the chosen tokens its expert served. Choose a second answer, or the same one with other words, to compare two topics.</source>
            <translation>单元格颜色越强，该专家处理所选词元的次数越多。选择第二个回答，或同一回答的其他词，即可比较两个话题。</translation>
        </message>
    </context>
    <context>
        <name>WizardPage</name>
        <message>
            <source>Reading {name}…</source>
            <translation>正在读取 {name}…</translation>
        </message>
        <message>
            <source>Nothing was left behind.</source>
            <translation>没有留下任何文件。</translation>
        </message>
        <message>
            <source>Save the model as</source>
            <translation>将模型另存为</translation>
        </message>
        <message>
            <source>Models (*.gguf)</source>
            <translation>模型 (*.gguf)</translation>
        </message>
        <message>
            <source>Texts (*.txt *.md)</source>
            <translation>文本 (*.txt *.md)</translation>
        </message>
        <message>
            <source>All files (*)</source>
            <translation>所有文件 (*)</translation>
        </message>
    </context>
</TS>
