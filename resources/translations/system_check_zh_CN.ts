<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
    <context>
        <name>SystemCheck</name>
        <message>
            <source>not available here, because {reason}</source>
            <translation>此处不可用，因为{reason}</translation>
        </message>
        <message>
            <source>it was not measured yet (a few seconds)</source>
            <translation>尚未测量（需要几秒钟）</translation>
        </message>
        <message>
            <source>Memory bandwidth</source>
            <translation>内存带宽</translation>
        </message>
        <message>
            <source>Each token reads all active weights once, so bandwidth divided by their size is the limit of tokens per second; Colibri's kernels reach 87 to 94 % of it with two threads.</source>
            <translation>每个词元都要把所有激活的权重读一遍，因此带宽除以其大小就是每秒词元数的上限；Colibri 的内核函数在两个线程下能达到上限的 87% 到 94%。</translation>
        </message>
        <message>
            <source>Disk speed</source>
            <translation>磁盘速度</translation>
        </message>
        <message>
            <source>Opening a model, and experts that do not fit memory, wait for the disk. 1 to 7 GB/s is usual for an SSD (NVMe).</source>
            <translation>打开模型以及读取内存放不下的专家时都要等待磁盘。NVMe 固态硬盘通常为 1 到 7 GB/s。</translation>
        </message>
        <message>
            <source>too little memory is free to measure with</source>
            <translation>可用内存太少，无法测量</translation>
        </message>
        <message>
            <source>{rate:.1f} GB/s with {threads} threads ({low:.1f} to {high:.1f})</source>
            <translation>{threads} 个线程 {rate:.1f} GB/s（{low:.1f} 到 {high:.1f}）</translation>
        </message>
        <message>
            <source>{rate:.1f} GB/s with {threads} threads: {share:.0f} % of the modules' {limit:.1f}</source>
            <translation>{threads} 个线程 {rate:.1f} GB/s：为内存条 {limit:.1f} 的 {share:.0f}%</translation>
        </message>
        <message>
            <source>That is little. Are all channels filled, is the memory's profile (XMP, EXPO) on, do others compute?</source>
            <translation>这个数值偏低。内存通道是否都已插满？内存配置文件（XMP、EXPO）是否已启用？是否有其他程序在计算？</translation>
        </message>
        <message>
            <source>there is no model of 32 MB or more to read</source>
            <translation>没有 32 MB 以上的模型可供读取</translation>
        </message>
        <message>
            <source>the file system has no direct reads</source>
            <translation>文件系统不支持直接读取</translation>
        </message>
        <message>
            <source>{rate:.2f} GB/s ({name}, direct reads)</source>
            <translation>{rate:.2f} GB/s（{name}，直接读取）</translation>
        </message>
        <message>
            <source>Keep models on an SSD inside the machine.</source>
            <translation>请将模型放在机内的固态硬盘上。</translation>
        </message>
        <message>
            <source>Reserved huge pages</source>
            <translation>预留大页</translation>
        </message>
        <message>
            <source>Weights on huge pages need few address translations: a file mapped in 4 KiB pages was read 20 to 25 % slower. Reserved pages are taken first; transparent ones serve where there are none.</source>
            <translation>位于大页上的权重只需要很少的地址转换：以 4 KiB 页映射的文件，实测读取慢 20% 到 25%。优先使用预留大页；没有预留时使用透明大页。</translation>
        </message>
        <message>
            <source>the kernel shows no pool of 2 MiB pages</source>
            <translation>系统内核没有 2 MiB 大页池</translation>
        </message>
        <message>
            <source>{pages} pages of 2 MiB ({size}), {free} free</source>
            <translation>{pages} 个 2 MiB 页（{size}），空闲 {free} 个</translation>
        </message>
        <message>
            <source>The model {model} would fill {wanted} of them.</source>
            <translation>模型 {model} 会占用其中的 {wanted} 页。</translation>
        </message>
        <message>
            <source>There are neither reserved nor transparent huge pages. Allow the latter.</source>
            <translation>既没有预留大页，也没有透明大页。请允许使用后者。</translation>
        </message>
        <message>
            <source>{pages} huge pages ({size}) are reserved; other programs cannot use that memory until it is undone or the next restart. The model uses them when it is loaded again.</source>
            <translation>将预留 {pages} 个大页（{size}）；在撤销此更改或下次重新启动之前，其他程序无法使用这些内存。模型重新加载后会使用它们。</translation>
        </message>
        <message>
            <source>Transparent huge pages</source>
            <translation>透明大页</translation>
        </message>
        <message>
            <source>The engine asks for them for all large buffers (madvise). Without any huge pages each 4 KiB needs a translation of its own; reading was 20 to 25 % slower.</source>
            <translation>引擎会为所有大缓冲区请求透明大页（madvise）。没有大页时，每 4 KiB 都需要单独的地址转换；实测读取慢 20% 到 25%。</translation>
        </message>
        <message>
            <source>the kernel was built without them, or does not show them</source>
            <translation>系统内核没有编入此功能，或没有列出</translation>
        </message>
        <message>
            <source>{mode}, defrag {defrag}; {given} given, {refused} refused since the start</source>
            <translation>{mode}，整理 {defrag}；启动以来给出 {given} 次，拒绝 {refused} 次</translation>
        </message>
        <message>
            <source>Programs that ask get transparent huge pages, until it is undone or the next restart.</source>
            <translation>提出请求的程序将获得透明大页，直到撤销此更改或下次重新启动。</translation>
        </message>
        <message>
            <source>Allow them to programs that ask.</source>
            <translation>请允许提出请求的程序使用。</translation>
        </message>
        <message>
            <source>Memory is fragmented: most were refused. Let the kernel tidy up, or restart.</source>
            <translation>内存碎片较多，多数请求被拒绝。请让内核整理内存，或重新启动。</translation>
        </message>
        <message>
            <source>Mount of huge pages</source>
            <translation>大页挂载</translation>
        </message>
        <message>
            <source>Colibri takes huge pages without a file system; a mount of hugetlbfs changes nothing for it.</source>
            <translation>Colibri 不通过文件系统使用大页；是否挂载 hugetlbfs 对它没有影响。</translation>
        </message>
        <message>
            <source>the list of mounts cannot be read</source>
            <translation>挂载列表无法读取</translation>
        </message>
        <message>
            <source>none</source>
            <translation>无</translation>
        </message>
        <message>
            <source>Limit on locked memory</source>
            <translation>锁定内存上限</translation>
        </message>
        <message>
            <source>Colibri locks no memory today, so a low limit costs it nothing. Tools that keep weights from being swapped out need at least the model's size.</source>
            <translation>Colibri 目前不锁定内存，因此较低的上限对它没有影响。需要防止权重被换出的工具，上限至少应为模型的大小。</translation>
        </message>
        <message>
            <source>the process's limits cannot be read</source>
            <translation>进程的限制无法读取</translation>
        </message>
        <message>
            <source>unlimited</source>
            <translation>无限制</translation>
        </message>
        <message>
            <source>You may lock any amount of memory after you have logged in again, until it is undone.</source>
            <translation>重新登录后，您可以锁定任意数量的内存，直到撤销此更改。</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>内存</translation>
        </message>
        <message>
            <source>Weights and experts that do not fit are read from the disk for each token that needs them.</source>
            <translation>内存放不下的权重和专家，每当词元需要时都要从磁盘读取。</translation>
        </message>
        <message>
            <source>{available} available of {total}</source>
            <translation>共 {total}，可用 {available}</translation>
        </message>
        <message>
            <source>The model {model} takes {size}: more than this machine has. Choose a smaller one, or limit the expert cache.</source>
            <translation>模型 {model} 需要 {size}，超过了本机的内存。请选择较小的模型，或限制专家缓存。</translation>
        </message>
        <message>
            <source>Programs waited for memory {percent:.0f} % of the last minute. Close some.</source>
            <translation>在过去一分钟里，程序有 {percent:.0f}% 的时间在等待内存。请关闭一些程序。</translation>
        </message>
        <message>
            <source>The kernel counts every promised byte (vm.overcommit_memory=2): large models may be refused early.</source>
            <translation>系统内核会计入每个已承诺的字节（vm.overcommit_memory=2）：大模型可能过早被拒绝。</translation>
        </message>
        <message>
            <source>only Linux shows this in files</source>
            <translation>只有 Linux 会在文件中提供</translation>
        </message>
        <message>
            <source>/proc cannot be read</source>
            <translation>/proc 无法读取</translation>
        </message>
        <message>
            <source>Swap</source>
            <translation>交换空间</translation>
        </message>
        <message>
            <source>Weights that were swapped out come back in pieces of 4 KiB, the slowest way to read a disk.</source>
            <translation>被换出的权重会以 4 KiB 的小块读回，这是读取磁盘最慢的方式。</translation>
        </message>
        <message>
            <source>{used} of {total} used, swappiness {swappiness}</source>
            <translation>已用 {used}，共 {total}，swappiness {swappiness}</translation>
        </message>
        <message>
            <source>Much is swapped out. Close programs before a large model is loaded, and swap less eagerly.</source>
            <translation>换出的内容较多。加载大模型前请关闭其他程序，并降低换出的积极程度。</translation>
        </message>
        <message>
            <source>Limits of the control group</source>
            <translation>控制组限制</translation>
        </message>
        <message>
            <source>A quota of processor time stops all workers when it is used up; a limit on memory ends the program.</source>
            <translation>处理器时间配额用尽时，所有工作线程都会停下；超出内存限制时，程序会被终止。</translation>
        </message>
        <message>
            <source>no control groups are visible</source>
            <translation>看不到控制组</translation>
        </message>
        <message>
            <source>memory {memory}, processor time of {cpus} CPUs</source>
            <translation>内存 {memory}，处理器时间 {cpus} 个 CPU</translation>
        </message>
        <message>
            <source>Use at most {n} threads, so that they are not stopped together.</source>
            <translation>请最多使用 {n} 个线程，以免它们一起被停下。</translation>
        </message>
        <message>
            <source>Instruction sets</source>
            <translation>指令集</translation>
        </message>
        <message>
            <source>Kernels are compiled for what the CPU has. With AMX the matrix products of a prompt took 1/2.1 of AVX-512's time.</source>
            <translation>内核函数按 CPU 所具备的指令编译。使用 AMX 时，提示的矩阵乘法只需 AVX-512 的 1/2.1 的时间。</translation>
        </message>
        <message>
            <source>the system does not list the CPU's instructions</source>
            <translation>系统没有列出 CPU 的指令</translation>
        </message>
        <message>
            <source>{cpu}: tier {tier} ({flags})</source>
            <translation>{cpu}：级别 {tier}（{flags}）</translation>
        </message>
        <message>
            <source>COLIBRI_ISA forces this tier; without it, {tier} would be used.</source>
            <translation>COLIBRI_ISA 强制使用此级别；不设置时会使用 {tier}。</translation>
        </message>
        <message>
            <source>This CPU has neither AVX2 nor AVX-512: plain code runs, several times slower.</source>
            <translation>此 CPU 既没有 AVX2 也没有 AVX-512：只能运行普通代码，速度慢数倍。</translation>
        </message>
        <message>
            <source>AMX permission</source>
            <translation>AMX 许可</translation>
        </message>
        <message>
            <source>Linux lends the tile registers only to a process that asks; prompts are read with them.</source>
            <translation>Linux 只把 tile 寄存器借给提出请求的进程；读取提示时会用到它们。</translation>
        </message>
        <message>
            <source>this CPU has no AMX</source>
            <translation>此 CPU 不支持 AMX</translation>
        </message>
        <message>
            <source>granted</source>
            <translation>已授予</translation>
        </message>
        <message>
            <source>Linux 5.16 or newer is needed, and a container must not forbid arch_prctl.</source>
            <translation>需要 Linux 5.16 或更新版本，并且容器不得禁止 arch_prctl。</translation>
        </message>
        <message>
            <source>refused by the kernel</source>
            <translation>被系统内核拒绝</translation>
        </message>
        <message>
            <source>Cores</source>
            <translation>核心</translation>
        </message>
        <message>
            <source>One worker runs on each physical core; two hyper-threads share the units that it keeps busy. Work is handed out in small pieces, so slow cores and those that other programs use do not hold the rest up.</source>
            <translation>每个物理核心运行一个工作线程；两个超线程会共享同一组繁忙的运算单元。工作以小块分发，因此较慢的核心或被其他程序占用的核心不会拖累其余核心。</translation>
        </message>
        <message>
            <source>the system does not list its CPUs</source>
            <translation>系统没有列出 CPU</translation>
        </message>
        <message>
            <source>{cores} physical cores for {cpus} CPUs</source>
            <translation>{cores} 个物理核心，{cpus} 个 CPU</translation>
        </message>
        <message>
            <source>fast cores on CPUs {fast}, small ones on {small}</source>
            <translation>快核心为 CPU {fast}，小核心为 {small}</translation>
        </message>
        <message>
            <source>hyper-threads on</source>
            <translation>超线程已开启</translation>
        </message>
        <message>
            <source>no hyper-threads</source>
            <translation>没有超线程</translation>
        </message>
        <message>
            <source>This program may run on CPUs {cpus} only (taskset, or a control group's cpuset).</source>
            <translation>此程序只能在 CPU {cpus} 上运行（taskset 或控制组的 cpuset）。</translation>
        </message>
        <message>
            <source>Caches</source>
            <translation>缓存</translation>
        </message>
        <message>
            <source>A model that fits the last cache is not limited by memory; all others are.</source>
            <translation>能放进末级缓存的模型不受内存限制，其他模型都受限制。</translation>
        </message>
        <message>
            <source>the system does not describe them</source>
            <translation>系统没有提供说明</translation>
        </message>
        <message>
            <source>Memory nodes (NUMA)</source>
            <translation>内存节点（NUMA）</translation>
        </message>
        <message>
            <source>the kernel shows no nodes</source>
            <translation>系统内核没有列出节点</translation>
        </message>
        <message>
            <source>node {number}: {size}, CPUs {cpus}</source>
            <translation>节点 {number}：{size}，CPU {cpus}</translation>
        </message>
        <message>
            <source>the host of this virtual machine sets the frequencies</source>
            <translation>频率由此虚拟机的宿主机设定</translation>
        </message>
        <message>
            <source>the kernel offers no control over frequencies (cpufreq)</source>
            <translation>系统内核不提供频率控制（cpufreq）</translation>
        </message>
        <message>
            <source>Frequency governor</source>
            <translation>调频策略</translation>
        </message>
        <message>
            <source>Generation reads memory between short waits. A governor that lowers the frequency when a core waits makes each token start slowly.</source>
            <translation>生成时会在短暂的等待之间读取内存。如果调频策略在核心等待时降低频率，每个词元都会起步缓慢。</translation>
        </message>
        <message>
            <source>{governors} (driver {driver})</source>
            <translation>{governors}（驱动 {driver}）</translation>
        </message>
        <message>
            <source>This governor keeps the cores at or near their lowest frequency. Choose performance.</source>
            <translation>此调频策略会让核心保持在最低频率附近。请选择 performance。</translation>
        </message>
        <message>
            <source>Energy preference</source>
            <translation>能耗偏好</translation>
        </message>
        <message>
            <source>It tells the processor how soon to raise the frequency when work comes.</source>
            <translation>它告诉处理器在有工作时应多快提高频率。</translation>
        </message>
        <message>
            <source>the driver {driver} has none</source>
            <translation>驱动 {driver} 没有此项</translation>
        </message>
        <message>
            <source>It favours saving over speed. The governor performance also sets this preference.</source>
            <translation>它偏向节能而不是速度。调频策略 performance 也会设置此偏好。</translation>
        </message>
        <message>
            <source>The governor of all cores becomes performance, until it is undone or the next restart.</source>
            <translation>所有核心的调频策略将变为 performance，直到撤销此更改或下次重新启动。</translation>
        </message>
        <message>
            <source>Frequencies</source>
            <translation>频率</translation>
        </message>
        <message>
            <source>Prompts are read as fast as the cores compute; a cap on the frequency caps them.</source>
            <translation>读取提示的速度取决于核心的计算速度；频率受限，速度也随之受限。</translation>
        </message>
        <message>
            <source>{lowest} to {highest}, now {now}</source>
            <translation>{lowest} 到 {highest}，现在 {now}</translation>
        </message>
        <message>
            <source>{n} CPUs may not go beyond {limit}. Lift the limit.</source>
            <translation>{n} 个 CPU 不得超过 {limit}。请解除此限制。</translation>
        </message>
        <message>
            <source>Turbo</source>
            <translation>睿频</translation>
        </message>
        <message>
            <source>Above the base frequency a core computes faster as long as it stays cool.</source>
            <translation>只要温度不高，核心就能以高于基础频率的速度计算。</translation>
        </message>
        <message>
            <source>there is no switch for it</source>
            <translation>没有对应的开关</translation>
        </message>
        <message>
            <source>on</source>
            <translation>开启</translation>
        </message>
        <message>
            <source>Switch it on, unless it was switched off to keep the machine quiet or cool.</source>
            <translation>请将其开启，除非是为了让机器安静或降温而关闭的。</translation>
        </message>
        <message>
            <source>off</source>
            <translation>关闭</translation>
        </message>
        <message>
            <source>Throttling by heat</source>
            <translation>过热降频</translation>
        </message>
        <message>
            <source>A core that grew too hot was slowed down by the hardware; speed then varies by the minute.</source>
            <translation>核心过热时会被硬件降速，速度因此时快时慢。</translation>
        </message>
        <message>
            <source>the kernel counts no such events on this machine</source>
            <translation>系统内核在本机上不统计此类事件</translation>
        </message>
        <message>
            <source>{cores} events of cores, {packages} of packages since the start</source>
            <translation>启动以来：核心 {cores} 次，封装 {packages} 次</translation>
        </message>
        <message>
            <source>Give the machine air, clean its fans, or use one thread less than there are cores.</source>
            <translation>请改善通风、清洁风扇，或者让线程数比核心数少一个。</translation>
        </message>
        <message>
            <source>Power supply</source>
            <translation>电源</translation>
        </message>
        <message>
            <source>On battery, and in the profile low-power, most firmware lowers all frequencies.</source>
            <translation>使用电池或 low-power 模式时，多数固件会降低所有频率。</translation>
        </message>
        <message>
            <source>the machine reports no mains supply and no power profile</source>
            <translation>机器没有报告外接电源和电源模式</translation>
        </message>
        <message>
            <source>on battery</source>
            <translation>使用电池</translation>
        </message>
        <message>
            <source>on mains</source>
            <translation>已接通电源</translation>
        </message>
        <message>
            <source>{supply}, profile {profile}</source>
            <translation>{supply}，模式 {profile}</translation>
        </message>
        <message>
            <source>Plug the machine in, or choose the profile performance.</source>
            <translation>请接通电源，或选择 performance 模式。</translation>
        </message>
        <message>
            <source>Other programs</source>
            <translation>其他程序</translation>
        </message>
        <message>
            <source>Programs that compute take cores and memory bandwidth from the engine.</source>
            <translation>正在计算的程序会占用引擎的核心和内存带宽。</translation>
        </message>
        <message>
            <source>the system does not tell its load</source>
            <translation>系统没有提供负载</translation>
        </message>
        <message>
            <source>{load:.2f} processes ran on average over the last minute, on {cpus} CPUs</source>
            <translation>过去一分钟平均有 {load:.2f} 个进程在运行，共 {cpus} 个 CPU</translation>
        </message>
        <message>
            <source>If that was not Colibri itself, see which programs compute, and close them.</source>
            <translation>如果不是 Colibri 自己，请查看哪些程序在计算，并将其关闭。</translation>
        </message>
        <message>
            <source>Free disk</source>
            <translation>可用磁盘空间</translation>
        </message>
        <message>
            <source>Models take 0.1 to 100 GB, and a conversion needs the source and the result at once.</source>
            <translation>模型占用 0.1 到 100 GB，转换时需要同时保存源文件和结果。</translation>
        </message>
        <message>
            <source>the folder of models cannot be read</source>
            <translation>模型文件夹无法读取</translation>
        </message>
        <message>
            <source>{size} free in {folder}</source>
            <translation>{folder} 中可用 {size}</translation>
        </message>
        <message>
            <source>Make room, or keep models in another folder (Settings, Model folders).</source>
            <translation>请腾出空间，或将模型放在其他文件夹（设置 → 模型文件夹）。</translation>
        </message>
        <message>
            <source>Compiled kernels</source>
            <translation>已编译的内核函数</translation>
        </message>
        <message>
            <source>They are compiled once for this CPU, when a model first needs them; later starts load them.</source>
            <translation>它们会在模型首次需要时为此 CPU 编译一次；之后启动时直接载入。</translation>
        </message>
        <message>
            <source>none yet: the first start compiles them</source>
            <translation>尚无：首次启动时会编译</translation>
        </message>
        <message>
            <source>{size} in {folder}</source>
            <translation>{folder} 中有 {size}</translation>
        </message>
        <message>
            <source>Sets of older versions may be deleted; what is needed is compiled again.</source>
            <translation>旧版本的文件可以删除；需要的内容会重新编译。</translation>
        </message>
        <message>
            <source>Virtual machine or container</source>
            <translation>虚拟机或容器</translation>
        </message>
        <message>
            <source>A guest shares cores and memory bandwidth with others, and sees only what its host shows.</source>
            <translation>虚拟机与其他程序共享核心和内存带宽，并且只能看到宿主机允许它看到的内容。</translation>
        </message>
        <message>
            <source>neither was found</source>
            <translation>均未发现</translation>
        </message>
        <message>
            <source>WSL2 gives Linux half of the memory unless .wslconfig says more. Keep models on Linux's own disk: files below /mnt are read through a network protocol.</source>
            <translation>除非 .wslconfig 另有设置，WSL2 只给 Linux 一半内存。请将模型放在 Linux 自己的磁盘上：/mnt 下的文件是通过网络协议读取的。</translation>
        </message>
        <message>
            <source>SELinux and AppArmor</source>
            <translation>SELinux 和 AppArmor</translation>
        </message>
        <message>
            <source>The engine loads its compiled kernels into memory and runs them there, which a policy can forbid.</source>
            <translation>引擎会把编译好的内核函数载入内存并在那里运行，而安全策略可能禁止这样做。</translation>
        </message>
        <message>
            <source>only Linux has them</source>
            <translation>只有 Linux 才有</translation>
        </message>
        <message>
            <source>neither is active</source>
            <translation>均未启用</translation>
        </message>
        <message>
            <source>SELinux's boolean deny_execmem forbids exactly that. Switch it off.</source>
            <translation>SELinux 的布尔值 deny_execmem 恰好禁止这样做。请将其关闭。</translation>
        </message>
        <message>
            <source>Kernel and C library</source>
            <translation>系统内核和 C 库</translation>
        </message>
        <message>
            <source>Older kernels lack AMX (5.16) and give huge pages less readily.</source>
            <translation>较旧的系统内核不支持 AMX（需要 5.16），也不太容易给出大页。</translation>
        </message>
        <message>
            <source>This CPU has AMX, and the kernel is too old for it.</source>
            <translation>此 CPU 支持 AMX，但系统内核版本过旧。</translation>
        </message>
        <message>
            <source>Kernel log</source>
            <translation>系统内核日志</translation>
        </message>
        <message>
            <source>It tells when the kernel ended programs for want of memory, and when huge pages could not be had.</source>
            <translation>它记录了内核何时因内存不足而终止程序，以及何时无法取得大页。</translation>
        </message>
        <message>
            <source>the kernel's log and counters cannot be read</source>
            <translation>系统内核的日志和计数器无法读取</translation>
        </message>
        <message>
            <source>{kills} programs ended for want of memory, {failures} failures of huge pages</source>
            <translation>因内存不足终止 {kills} 个程序，大页失败 {failures} 次</translation>
        </message>
        <message>
            <source>The last line: {line}</source>
            <translation>最后一行：{line}</translation>
        </message>
        <message>
            <source>Which programs, only the administrator may read.</source>
            <translation>只有管理员才能查看是哪些程序。</translation>
        </message>
        <message>
            <source>Display</source>
            <translation>显示</translation>
        </message>
        <message>
            <source>The window needs one; without it, `colibri chat` works in the terminal.</source>
            <translation>窗口需要显示服务；没有时，可以在终端中使用 `colibri chat`。</translation>
        </message>
        <message>
            <source>only Linux has several</source>
            <translation>只有 Linux 才有多种</translation>
        </message>
        <message>
            <source>none (a terminal only)</source>
            <translation>无（仅有终端）</translation>
        </message>
        <message>
            <source>Entropy</source>
            <translation>熵</translation>
        </message>
        <message>
            <source>Random seeds of answers come from the kernel; while its pool is empty, the start may wait.</source>
            <translation>回答的随机种子来自系统内核；熵池为空时，启动可能要等待。</translation>
        </message>
        <message>
            <source>the kernel does not tell it</source>
            <translation>系统内核没有提供</translation>
        </message>
        <message>
            <source>{bits} bits</source>
            <translation>{bits} 位</translation>
        </message>
        <message>
            <source>A source of randomness helps, in virtual machines virtio-rng.</source>
            <translation>增加一个随机源会有帮助，在虚拟机中可用 virtio-rng。</translation>
        </message>
        <message>
            <source>about {percent:.0f} % faster</source>
            <translation>约快 {percent:.0f} %</translation>
        </message>
        <message>
            <source>about {times:.1f} times as fast</source>
            <translation>约为现在的 {times:.1f} 倍速度</translation>
        </message>
        <message>
            <source>{share:.0f} % of each token is waiting for experts that are read from the disk for the first time: this passes as the conversation goes on, {gain}.</source>
            <translation>每个词元有 {share:.0f} % 的时间在等待首次从磁盘读取的专家：随着对话继续会自行消失，{gain}。</translation>
        </message>
        <message>
            <source>{share:.0f} % of each token is waiting for experts that had to leave memory and are read again: give the expert cache {size} more, which is free, {gain}.</source>
            <translation>每个词元有 {share:.0f} % 的时间在等待被移出内存后又重新读取的专家：为专家缓存再分配 {size}（目前空闲），{gain}。</translation>
        </message>
        <message>
            <source>{share:.0f} % of each token is waiting for experts that do not fit into memory: choose a model of fewer bytes or convert it to Q4_K_M, up to {gain}.</source>
            <translation>每个词元有 {share:.0f} % 的时间在等待内存放不下的专家：选择更小的模型或转换为 Q4_K_M，最多{gain}。</translation>
        </message>
        <message>
            <source>{workers} workers share processor time of {cpus:g} CPUs and wait {share:.0f} % of each token for each other: set Threads to {n} (Settings), up to {gain}.</source>
            <translation>{workers} 个工作线程共用 {cpus:g} 个 CPU 的处理器时间，每个词元有 {share:.0f} % 的时间互相等待：把线程数设为 {n}（设置），最多{gain}。</translation>
        </message>
        <message>
            <source>Tokens take {mean:.1f} ms on average and {quiet:.1f} ms when nothing disturbs them, and {load:.1f} processes ran on {cpus} CPUs: close programs that compute, {gain}.</source>
            <translation>词元平均耗时 {mean:.1f} 毫秒，不受干扰时为 {quiet:.1f} 毫秒，而 {cpus} 个 CPU 上有 {load:.1f} 个进程在运行：关闭占用计算的程序，{gain}。</translation>
        </message>
        <message>
            <source>The processor slowed itself down because of heat, and tokens take {mean:.1f} ms on average, the quickest tenth {quiet:.1f}: give it air, {gain}.</source>
            <translation>处理器因过热而降速，词元平均耗时 {mean:.1f} 毫秒，最快的十分之一为 {quiet:.1f} 毫秒：改善散热，{gain}。</translation>
        </message>
        <message>
            <source>Only {workers} of {cores} cores work for the model: set Threads to automatic (Settings), up to {gain}.</source>
            <translation>{cores} 个核心中只有 {workers} 个为模型工作：把线程数设为自动（设置），最多{gain}。</translation>
        </message>
        <message>
            <source>{workers} workers share {cores} physical cores and wait {share:.0f} % of each token for each other: set Threads to automatic (Settings), up to {gain}.</source>
            <translation>{workers} 个工作线程共用 {cores} 个物理核心，每个词元有 {share:.0f} % 的时间互相等待：把线程数设为自动（设置），最多{gain}。</translation>
        </message>
        <message>
            <source>The governor powersave holds the cores at {now} though they can do {highest}: choose the governor performance, up to {gain}.</source>
            <translation>调频策略 powersave 把核心限制在 {now}，而它们可达 {highest}：选择调频策略 performance，最多{gain}。</translation>
        </message>
        <message>
            <source>A limit holds the cores at {now} though they can do {highest}: lift the limit, up to {gain}.</source>
            <translation>频率上限把核心限制在 {now}，而它们可达 {highest}：取消该上限，最多{gain}。</translation>
        </message>
        <message>
            <source>{share:.0f} % of the model lies on pages of 4 KiB, which are read 20 % slower: allow huge pages and load the model again, {gain}.</source>
            <translation>模型有 {share:.0f} % 位于 4 KiB 页上，读取会慢 20 %：允许使用大页并重新加载模型，{gain}。</translation>
        </message>
        <message>
            <source>Programs waited for memory {percent:.0f} % of the last minute: close some, up to {gain}.</source>
            <translation>最近一分钟里程序有 {percent:.0f} % 的时间在等待内存：关闭一些程序，最多{gain}。</translation>
        </message>
        <message>
            <source>Reading the prompt took {share:.0f} % of the last answer&apos;s time, and COLIBRI_ISA forbids the processor&apos;s matrix unit (AMX): start Colibri without it, up to {gain}.</source>
            <translation>读取提示占上一个回答 {share:.0f} % 的时间，而 COLIBRI_ISA 禁用了处理器的矩阵单元（AMX）：启动 Colibri 时不要设置它，最多{gain}。</translation>
        </message>
        <message>
            <source>Reading the prompt took {share:.0f} % of the last answer&apos;s time, and the kernel refuses the processor&apos;s matrix unit (AMX): use Linux 5.16 or newer, outside a container that forbids it, up to {gain}.</source>
            <translation>读取提示占上一个回答 {share:.0f} % 的时间，而内核拒绝使用处理器的矩阵单元（AMX）：使用 Linux 5.16 或更新版本，且不在禁止它的容器中运行，最多{gain}。</translation>
        </message>
        <message>
            <source>Reading {tokens:,} tokens of the prompt took {seconds:.1f} of {all:.1f} s: with half as much text, or what was read before at its beginning, the answer is there {gain}.</source>
            <translation>读取提示的 {tokens:,} 个词元用去 {all:.1f} 秒中的 {seconds:.1f} 秒：若文本减半，或开头是以前读过的内容，得到回答{gain}。</translation>
        </message>
        <message>
            <source>Looking back over {n:,} positions takes {share:.0f} % of each token: begin a new chat when the subject changes, {gain}.</source>
            <translation>回顾 {n:,} 个位置占每个词元 {share:.0f} % 的时间：换话题时新建对话，{gain}。</translation>
        </message>
        <message>
            <source>Each token reads {size} of weights at {rate:.1f} of the {limit:.1f} GB/s that this memory gives: convert the model from {bits:.1f} to {goal} bits a weight (Convert, Q4_K_M), {gain}.</source>
            <translation>每个词元读取 {size} 权重，速度为 {rate:.1f} GB/s（此内存可达 {limit:.1f} GB/s）：把模型从每权重 {bits:.1f} 位转换为 {goal} 位（转换，Q4_K_M），{gain}。</translation>
        </message>
        <message>
            <source>{value}, measured on {day}</source>
            <translation>{value}，测量于 {day}</translation>
        </message>
        <message>
            <source>No answer of {n} tokens or more was measured yet: ask the model something, then ask again here, and the expected gains will be computed.</source>
            <translation>还没有测量到 {n} 个词元以上的回答：先向模型提问，再回来点此按钮，便会计算预期的提升。</translation>
        </message>
        <message>
            <source>The check found {n} problems, the first of them: {title}, {value}.</source>
            <translation>检查发现 {n} 个问题，首要的是：{title}，{value}。</translation>
        </message>
        <message>
            <source>Nothing was found that slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at {rate:.1f} GB/s; measure the memory (System check) to learn whether that is its limit.</source>
            <translation>没有发现拖慢模型的原因：每个词元耗时 {ms:.1f} 毫秒，以 {rate:.1f} GB/s 读取 {size} 权重；测量内存（系统检查）可知这是否已是其极限。</translation>
        </message>
        <message>
            <source>Nothing slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at {rate:.1f} GB/s, more than the memory&apos;s {limit:.1f}, because much of it stays in the processor&apos;s cache.</source>
            <translation>没有什么拖慢模型：每个词元耗时 {ms:.1f} 毫秒，以 {rate:.1f} GB/s 读取 {size} 权重，高于内存的 {limit:.1f} GB/s，因为其中很多留在处理器缓存中。</translation>
        </message>
        <message>
            <source>Nothing slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at {rate:.1f} of the {limit:.1f} GB/s that this memory gives; only a smaller model or faster memory would change that.</source>
            <translation>没有什么拖慢模型：每个词元耗时 {ms:.1f} 毫秒，以 {rate:.1f} GB/s 读取 {size} 权重（此内存可达 {limit:.1f} GB/s）；只有更小的模型或更快的内存才能改变这一点。</translation>
        </message>
        <message>
            <source>Each node&apos;s memory is near to its own cores. Colibri places nothing by node: a weight lies where the core is that unpacked it, so weights spread over all nodes whose cores work, and any core may read them later.</source>
            <translation>每个节点的内存靠近它自己的核心。Colibri 不按节点放置数据：权重位于解包它的核心所在的节点，因此会分散到所有参与工作的节点上，之后任何核心都可能读取。</translation>
        </message>
        <message>
            <source>About {share:.0f} % of all reads cross the link between the {n} nodes. The model fits into one of them: keep the program there.</source>
            <translation>约 {share:.0f} % 的读取要经过 {n} 个节点之间的链路。模型能放入其中一个节点：让程序只在那里运行。</translation>
        </message>
        <message>
            <source>About {share:.0f} % of all reads cross the link between the {n} nodes. Spread the memory evenly, or keep a model that fits into one node there, with its cores.</source>
            <translation>约 {share:.0f} % 的读取要经过 {n} 个节点之间的链路。请把内存均匀分布到各节点，或让能放入一个节点的模型只用该节点及其核心。</translation>
        </message>
        <message>
            <source>one physical core for {cpus} CPUs</source>
            <translation>一个物理核心，{cpus} 个 CPU</translation>
        </message>
    </context>
</TS>
