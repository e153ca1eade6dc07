import { defineConfig, type MarkdownOptions } from 'vitepress';
import {
  anchorOf,
  documents,
  inSite,
  linkInSite,
  pages,
  sections,
  writeFirstPages,
  writeTexts,
} from '../../scripts/docs-site.ts';

const isFile = (href: string) => !/^#|^[a-z]+:|\.md(?:#|$)/.test(href);

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0];

/** Leads links of the repository to pages of the site, or to copied files; a link to a folder becomes its text. */
function followLinks(md: MarkdownIt): void {
  md.core.ruler.push('links-of-the-repository', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let isFolder = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const href = linkInSite(env.relativePath, token.attrGet('href') ?? '');
          isFolder = href === undefined;
          token.attrSet('href', href ?? '');
          // To the site any other link is one to a page.
          if (href !== undefined && isFile(href)) token.attrSet('download', '');
        }
        if (isFolder && /^link_(?:open|close)$/.test(token.type)) Object.assign(token, { type: 'text', content: '' });
      }
    }
  });
}

/** Documents are plain Markdown: no HTML but comments, and nothing for Vue. */
function keepPlain(md: MarkdownIt): void {
  md.core.ruler.before('normalize', 'without-comments', (state) => {
    state.src = state.src.replace(/^<!--.*?-->$/gms, '');
  });
  const { code_inline: inline } = md.renderer.rules;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    tokens[index]?.attrSet('v-pre', '');
    return inline?.(tokens, index, ...rest) ?? '';
  };
}

/** `npm run docs`, `npm run docs:build`: the documents as a site. Paths in it are those of the repository. */
export default defineConfig({
  title: 'Account service',
  description: 'Accounts, profiles and uploads for your product',
  srcDir: '..',
  srcExclude: [...documents.filter((file) => !pages.includes(file)), '**/node_modules/**', '.data/**'],
  rewrites: Object.fromEntries(pages.map((file) => [file, inSite(file)])),
  // VitePress would minify scripts of a usual type by esbuild, which Vite 8 does not have.
  transformHead({ head }) {
    for (const [tag, attributes] of head) if (tag === 'script') attributes['type'] = 'text/ecmascript';
  },
  buildEnd({ outDir }) {
    writeFirstPages(outDir);
    writeTexts(outDir);
  },
  // Of the quick start.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    html: false,
    anchor: { slugify: anchorOf },
    config(md) {
      keepPlain(md);
      followLinks(md);
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sections.map(({ text, pages }) => ({
      text,
      collapsed: text === 'Design',
      items: pages.map(([title, file]) => ({ text: title, link: `/${inSite(file)}` })),
    })),
    outline: [2, 3],
  },
});
