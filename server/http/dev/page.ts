import { escapeHtml } from '../../lib/escape-html.ts';

/** A page of the development tools. `title` is text, `content` is HTML. */
export const devPage = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: Canvas; color: CanvasText; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .5rem; border-bottom: 1px solid #8886; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
iframe { width: 100%; height: 32rem; border: 1px solid #8886; border-radius: .5rem; background: #fff; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
form { display: grid; gap: 1rem; max-width: 26rem; }
label { display: grid; gap: .25rem; font-weight: 600; }
label:has([type=checkbox]) { display: block; }
small { font-weight: 400; opacity: .8; }
input, button { font: inherit; padding: .5rem; }
</style>
</head>
<body><main><h1>${escapeHtml(title)}</h1>
${content}
</main>
<script>for (const time of document.querySelectorAll('time')) time.textContent = new Date(time.textContent).toLocaleString(navigator.languages);</script>
</body>
</html>
`;
