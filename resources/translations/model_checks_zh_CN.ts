<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
    <context>
        <name>ModelChecks</name>
        <message>
            <source>{name} is {said} in config.json, but {key} is {kept} in the file</source>
            <translation>config.json 中 {name} 为 {said}，而文件中 {key} 为 {kept}</translation>
        </message>
        <message>
            <source>vocab_size is {said} in config.json, but the file has {kept} tokens</source>
            <translation>config.json 中 vocab_size 为 {said}，而文件有 {kept} 个词元</translation>
        </message>
        <message>
            <source>architectures is {name} in config.json, which is {said}, but the file is {kept}</source>
            <translation>config.json 中 architectures 为 {name}，即 {said}，而文件是 {kept}</translation>
        </message>
        <message>
            <source>this version does not know the architecture {name}; it knows {known}</source>
            <translation>此版本不认识架构 {name}；认识的有 {known}</translation>
        </message>
        <message>
            <source>{name}, which this version runs</source>
            <translation>{name}，此版本可以运行</translation>
        </message>
        <message>
            <source>{heads} heads share {kv_heads} keys and values of {size} each, of {width} values a token</source>
            <translation>{heads} 个头共用 {kv_heads} 组键和值，每组 {size} 个数；每个词元 {width} 个数</translation>
        </message>
        <message>
            <source>all that the architecture needs are there, of the shapes that the keys ask for: {n:,}, in memory {megabytes:,.0f} MB with a context of {context:,} tokens</source>
            <translation>架构所需的张量都在，形状与键一致：共 {n:,} 个，上下文为 {context:,} 个词元时占内存 {megabytes:,.0f} MB</translation>
        </message>
        <message>
            <source>block_count is {said}; a number from 1 to {most:,} was expected</source>
            <translation>block_count 为 {said}；应为 1 到 {most:,} 之间的数</translation>
        </message>
        <message>
            <source>block_count is {said}, but there are no tensors of layer {layers}</source>
            <translation>block_count 为 {said}，但缺少这些层的张量：{layers}</translation>
        </message>
        <message>
            <source>block_count is {said}, but there are tensors of layer {layers}</source>
            <translation>block_count 为 {said}，却有这些层的张量：{layers}</translation>
        </message>
        <message>
            <source>{n}, numbered without a gap</source>
            <translation>{n} 层，编号连续</translation>
        </message>
        <message>
            <source>{n:,} tokens, but {name} has {rows:,} rows</source>
            <translation>{n:,} 个词元，而 {name} 有 {rows:,} 行</translation>
        </message>
        <message>
            <source>{n:,} tokens, as many as the embedding has rows</source>
            <translation>{n:,} 个词元，与嵌入的行数相同</translation>
        </message>
        <message>
            <source>tokenizer.ggml.eos_token_id is {said}, but the vocabulary has {n:,} tokens</source>
            <translation>tokenizer.ggml.eos_token_id 为 {said}，而词表只有 {n:,} 个词元</translation>
        </message>
        <message>
            <source>none is known; an answer ends only at its length limit</source>
            <translation>没有已知的结束词元；回答只会在达到长度上限时结束</translation>
        </message>
        <message>
            <source>none: a base model, which continues texts and holds no conversation</source>
            <translation>没有：这是基础模型，只续写文本，不进行对话</translation>
        </message>
        <message>
            <source>renders a conversation with an instruction of the system ({n:,} characters)</source>
            <translation>能呈现带系统指令的对话（{n:,} 个字符）</translation>
        </message>
        <message>
            <source>renders a conversation ({n:,} characters), but takes no instruction of the system</source>
            <translation>能呈现对话（{n:,} 个字符），但不接受系统指令</translation>
        </message>
        <message>
            <source>{n:,} tokens</source>
            <translation>{n:,} 个词元</translation>
        </message>
        <message>
            <source>{n:,} tokens, stretched from {trained:,} ({kind})</source>
            <translation>{n:,} 个词元，由 {trained:,} 个扩展而来（{kind}）</translation>
        </message>
        <message>
            <source>{tensor} is there, but the file says no {name}.expert_count</source>
            <translation>有 {tensor}，但文件没有给出 {name}.expert_count</translation>
        </message>
        <message>
            <source>{name}.expert_count is {n}, but {tensor} holds {found}</source>
            <translation>{name}.expert_count 为 {n}，而 {tensor} 含有 {found} 个</translation>
        </message>
        <message>
            <source>{name}.expert_used_count is {top_k}; a number from 1 to {n} was expected</source>
            <translation>{name}.expert_used_count 为 {top_k}；应为 1 到 {n} 之间的数</translation>
        </message>
        <message>
            <source>{n}, {top_k} of them for each token</source>
            <translation>{n} 个，每个词元用其中 {top_k} 个</translation>
        </message>
        <message>
            <source>experts, but no router (blk.N.{router}), in layer {layers}</source>
            <translation>这些层有专家，却没有路由器（blk.N.{router}）：{layers}</translation>
        </message>
        <message>
            <source>no layer has a router (a tensor named blk.N.{router})</source>
            <translation>没有任何一层有路由器（名为 blk.N.{router} 的张量）</translation>
        </message>
        <message>
            <source>{router} chooses among {found} experts, but there are {n}</source>
            <translation>{router} 在 {found} 个专家中选择，而实际有 {n} 个</translation>
        </message>
        <message>
            <source>one in each layer with experts, {n} in all</source>
            <translation>每个有专家的层各一个，共 {n} 个</translation>
        </message>
        <message>
            <source>{names}: {n} are quantised, and may choose other experts than the source's</source>
            <translation>{names}：其中 {n} 个经过量化，选出的专家可能与源模型不同</translation>
        </message>
        <message>
            <source>every tensor begins at a multiple of {n:,} bytes</source>
            <translation>每个张量都从 {n:,} 字节的整数倍处开始</translation>
        </message>
        <message>
            <source>to {n:,} bytes, as is usual; files that Colibri writes: {own:,}</source>
            <translation>按 {n:,} 字节对齐，与通常一样；Colibri 写的文件为 {own:,}</translation>
        </message>
        <message>
            <source>says what the file says</source>
            <translation>与文件一致</translation>
        </message>
        <message>
            <source>the file does not say it; look where it was published</source>
            <translation>文件没有说明；请到发布处查看</translation>
        </message>
        <message>
            <source>{items} and {n} more</source>
            <translation>{items} 及另外 {n} 层</translation>
        </message>
        <message>
            <source>architecture</source>
            <translation>架构</translation>
        </message>
        <message>
            <source>heads</source>
            <translation>注意力头</translation>
        </message>
        <message>
            <source>layers</source>
            <translation>层</translation>
        </message>
        <message>
            <source>tensors</source>
            <translation>张量</translation>
        </message>
        <message>
            <source>vocabulary</source>
            <translation>词表</translation>
        </message>
        <message>
            <source>end of an answer</source>
            <translation>回答的结束</translation>
        </message>
        <message>
            <source>chat template</source>
            <translation>聊天模板</translation>
        </message>
        <message>
            <source>context</source>
            <translation>上下文</translation>
        </message>
        <message>
            <source>experts</source>
            <translation>专家</translation>
        </message>
        <message>
            <source>routers</source>
            <translation>路由器</translation>
        </message>
        <message>
            <source>router precision</source>
            <translation>路由器精度</translation>
        </message>
        <message>
            <source>alignment</source>
            <translation>对齐</translation>
        </message>
        <message>
            <source>licence</source>
            <translation>许可证</translation>
        </message>
    </context>
</TS>
