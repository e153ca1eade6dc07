import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** What the site of the documents consists of (docs/.vitepress/config.ts): its pages, links and texts for language models. */

export const root = join(import.meta.dirname, '..');

/** The pages in the order of the side bar, by their titles and files. */
export const sections: { text: string; pages: [title: string, file: string][] }[] = [
  {
    text: 'Start',
    pages: [
      ['Account service', 'README.md'],
      ['The contract', 'docs/interface.md'],
      ['Changes', 'CHANGELOG.md'],
      ['Security', 'SECURITY.md'],
      ['Security of OAuth', 'docs/oauth-security.md'],
      ['OWASP ASVS 5.0', 'docs/asvs.md'],
      ['Standards', 'docs/standards.md'],
    ],
  },
  {
    text: 'Front ends',
    pages: [
      ['API', 'docs/api.md'],
      ['Error codes', 'docs/errors/README.md'],
      ['Typed client', 'client/README.md'],
      ['Typed client, for assistants', 'client/SKILL.md'],
      ['Front ends', 'docs/front-ends.md'],
      ['Files and images', 'docs/files.md'],
      ['Customization', 'docs/customization.md'],
      ['Profile fields', 'docs/profile-fields.md'],
      ['Access keys', 'docs/access-keys.md'],
      ['Other services', 'docs/services.md'],
      ['Events', 'docs/events.md'],
      ['Webhooks', 'docs/webhooks.md'],
      ['Applications', 'docs/applications.md'],
    ],
  },
  {
    text: 'Operators',
    pages: [
      ['Configuration', 'docs/configuration.md'],
      ['Operations', 'docs/operations.md'],
      ['Files for a deployment', 'docs/deploy/README.md'],
      ['Scale', 'docs/scale.md'],
      ['Users from other products', 'docs/migration/README.md'],
      ['From better-auth', 'docs/migration/better-auth.md'],
      ['From Django', 'docs/migration/django.md'],
      ['From Firebase', 'docs/migration/firebase.md'],
      ['From Keycloak', 'docs/migration/keycloak.md'],
      ['From Supabase', 'docs/migration/supabase.md'],
    ],
  },
  {
    text: 'Contributors',
    pages: [
      ['Contributing', 'CONTRIBUTING.md'],
      ['Architecture', 'docs/architecture.md'],
      ['Performance', 'docs/performance.md'],
      ['Proof', 'docs/proof.md'],
      ['Releasing', 'docs/releasing.md'],
      ['Tests', 'test/README.md'],
      ['The bench', 'test/bench/README.md'],
      ['Results of the bench', 'test/bench/RESULTS.md'],
      ['Faults', 'test/faults/README.md'],
      ['Clusters', 'test/cluster/README.md'],
      ['Prove', 'test/prove/README.md'],
      ['Mutants', 'test/mutation/README.md'],
      ['Security checks', 'test/checks.md'],
    ],
  },
  {
    text: 'Design',
    pages: [
      ['Overview', 'docs/design/README.md'],
      ...[...readFileSync(join(root, 'docs/design/README.md'), 'utf8').matchAll(/^\| \[(.+?)\]\((.+?\.md)\)/gm)].map(
        ([, title = '', file = '']): [string, string] => [title, `docs/design/${file}`],
      ),
    ],
  },
];

/** Every document of the repository. */
export const documents = ['*.md', '{client,docs,test}/**/*.md'].flatMap((pattern) =>
  globSync(pattern, { cwd: root, exclude: ['**/node_modules/**', '**/.vitepress/**', '**/dist/**'] }),
);

/** The pages of error codes, which the side bar does not list. */
const codePages = documents.filter((file) => /^docs\/errors\/[A-Z_]+\.md$/.test(file) && !file.endsWith('README.md'));

export const pages = [...sections.flatMap((section) => section.pages.map(([, file]) => file)), ...codePages.sort()];

/** The anchor that GitHub makes of a heading; the site makes the same. */
export const anchorOf = (heading: string): string =>
  heading
    .replaceAll('`', '')
    .toLowerCase()
    .trim()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** The file of a page in the site: a README is the index of its folder. */
export const inSite = (file: string): string => file.replace(/(^|\/)README\.md$/, '$1index.md');

/**
 * A link in a document as the site has it: a page by its file in the site, another file of the repository by itself;
 * undefined for a folder, which the site does not have.
 */
export function linkInSite(from: string, href: string): string | undefined {
  const [path = '', anchor] = href.split('#');
  if (path === '' || /^[a-z]+:/.test(path)) return href;
  const target = posix.join(posix.dirname(from), path);
  if (!existsSync(join(root, target)) || statSync(join(root, target)).isDirectory()) return undefined;
  return `${inSite(path)}${anchor === undefined ? '' : `#${anchor}`}`;
}

/** The files that pages link to and that are no pages. */
export function linkedFiles(): string[] {
  const targets = pages.flatMap((from) =>
    [...readFileSync(join(root, from), 'utf8').matchAll(/\]\((?![a-z]+:)([^)\s#]+)/g)].map(([, path = '']) =>
      posix.join(posix.dirname(from), path),
    ),
  );
  return [...new Set(targets)].filter((path) => !path.endsWith('.md') && statSync(join(root, path)).isFile());
}

/**
 * VitePress loads the first page from a second file without the static content. It adds that to Rollup's bundle, which
 * Vite's Rolldown ignores: here it is the same file.
 */
export function writeFirstPages(outDir: string): void {
  const cwd = join(outDir, 'assets');
  for (const file of globSync('*.md.*.js', { cwd }).filter((name) => !name.endsWith('.lean.js')))
    copyFileSync(join(cwd, file), join(cwd, file.replace(/js$/, 'lean.js')));
}

/** Writes the linked files, and the documents as texts for language models (llmstxt.org), into the built site. */
export function writeTexts(outDir: string): void {
  const write = (file: string, text: string) => writeFileSync(join(outDir, file), text);
  for (const file of linkedFiles()) {
    mkdirSync(join(outDir, dirname(file)), { recursive: true });
    copyFileSync(join(root, file), join(outDir, file));
  }
  const [summary = ''] = /(?<=^# .*\n\n)[\s\S]*?(?=\n\n)/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  const lists = sections.map(({ text, pages }) =>
    [`## ${text}`, '', ...pages.map(([title, file]) => `- [${title}](/${inSite(file).replace(/md$/, 'html')})`)].join(
      '\n',
    ),
  );
  write('llms.txt', `# Account service\n\n> ${summary.replaceAll('\n', ' ')}\n\n${lists.join('\n\n')}\n`);
  const texts = pages.map((file) => `<!-- ${file} -->\n\n${readFileSync(join(root, file), 'utf8')}`);
  write('llms-full.txt', texts.join('\n\n'));
}
