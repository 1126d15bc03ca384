// Owns: how the status page looks, by day and by night. Must not: load anything.

export const style = `
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --line: #dfe3e8; --text: #16191d; --soft: #5b6673;
  --good: #11734b; --good-ground: #d8f3e5; --bad: #b3261e; --bad-ground: #fde3e1; --warn: #8a5a00; --warn-ground: #fff0cf;
  --serve: #2c9c6a; --drain: #e0a11b; --begin: #9aa6b4; --grid: #e9ecf0; --spark: #3b78c9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1216; --card: #171b21; --line: #2a313a; --text: #e4e8ee; --soft: #96a1af;
    --good: #6fdca8; --good-ground: #12382a; --bad: #ff8d85; --bad-ground: #481a18; --warn: #f3c45f; --warn-ground: #3d2f0c;
    --serve: #2f9e70; --drain: #c98f1b; --begin: #5b6673; --grid: #232932; --spark: #6ea5f0;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.45 system-ui, "Segoe UI", Roboto, sans-serif; }
main, header { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: baseline; padding-top: 1rem; }
h1 { font-size: 1.2rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0; }
h3 { font-size: .8rem; margin: 1.2rem 0 .4rem; color: var(--soft); text-transform: uppercase; letter-spacing: .06em; }
.soft { color: var(--soft); }
.push { margin-left: auto; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem; margin: 1rem 0; }
.head { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; }
.badge { border-radius: 1rem; padding: .1rem .75rem; font-weight: 650; font-size: .95rem; white-space: nowrap; }
.good { color: var(--good); background: var(--good-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.warn { color: var(--warn); background: var(--warn-ground); }
.notice { border-radius: .4rem; padding: .5rem .75rem; margin: .7rem 0 0; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin-top: .9rem; }
.figure b { display: block; font-size: 1.7rem; line-height: 1.15; font-weight: 650; font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: .85rem; }
.bar { height: .6rem; border-radius: .3rem; background: var(--grid); overflow: hidden; margin-top: .35rem; width: 14rem; max-width: 100%; }
.bar i { display: block; height: 100%; background: var(--drain); }
canvas { display: block; width: 14rem; max-width: 100%; height: 2.6rem; }
.spans { float: right; }
.spans button { font: inherit; font-size: .8rem; color: var(--soft); background: none; border: 1px solid transparent; border-radius: .3rem; cursor: pointer; }
.spans button[aria-pressed=true] { color: var(--text); border-color: var(--line); background: var(--ground); }
.row { display: grid; grid-template-columns: 9.5rem 1fr; align-items: center; gap: .6rem; min-height: 1.75rem; font-variant-numeric: tabular-nums; }
.row .name { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; font-size: .9rem; }
.track { position: relative; height: 1.1rem; background: var(--grid); border-radius: .25rem; overflow: hidden; }
.track i { position: absolute; top: 0; bottom: 0; min-width: 3px; }
.begin { background: var(--begin); } .serve { background: var(--serve); } .drain { background: var(--drain); }
.died { width: 4px; background: var(--bad); }
.axis { display: flex; justify-content: space-between; font-size: .78rem; color: var(--soft); margin-left: 10.1rem; }
.legend { font-size: .8rem; color: var(--soft); }
.legend i { display: inline-block; width: .8rem; height: .7rem; border-radius: .15rem; margin: 0 .3rem 0 .9rem; vertical-align: -.05rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .8rem; }
th, td { padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; white-space: nowrap; }
td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
code, .log { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .82rem; }
.log { max-height: 20rem; overflow: auto; overflow-wrap: anywhere; }
.log div { padding: .1rem 0; }
.tone { border-radius: .2rem; padding: 0 .25rem; }
.log time { color: var(--soft); margin-right: .7rem; }
form { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; }
input, form button { font: inherit; padding: .4rem .7rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--ground); color: inherit; }
input { flex: 1 1 18rem; }
[hidden] { display: none !important; }
@media (max-width: 40rem) { .row { grid-template-columns: 5.5rem 1fr; } .axis { margin-left: 6.1rem; } }
`;
