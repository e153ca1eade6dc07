import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedPage, table } from './generated-page.ts';

/**
 * `npm run docs:configuration`: the tables of docs/configuration.md, from .env.example. There `# ---- Title ----` begins a
 * section. Comment lines describe the variables after them and end with "Default: …". A comment before an empty line
 * is the introduction of its section.
 */
interface Section {
  title: string;
  introduction: string;
  variables: { names: string[]; text: string }[];
}

function sectionsOf(example: string): Section[] {
  const sections: Section[] = [];
  let comment: string[] = [];
  for (const line of example.split('\n')) {
    const section = sections.at(-1);
    const [, title] = /^# ---- (.+) ----$/.exec(line) ?? [];
    const [, name] = /^(?:# )?([A-Z0-9_]+(?:<NAME>[A-Z_]+)?)=$/.exec(line) ?? [];
    if (title !== undefined) {
      sections.push({ title, introduction: '', variables: [] });
      comment = [];
    } else if (name !== undefined) {
      if (comment.length > 0) section?.variables.push({ names: [name], text: comment.join(' ') });
      else section?.variables.at(-1)?.names.push(name);
      comment = [];
    } else if (line.startsWith('# ')) comment.push(line.slice(2));
    else {
      if (section && comment.length > 0) section.introduction = comment.join(' ');
      comment = [];
    }
  }
  return sections;
}

const example = readFileSync(join(import.meta.dirname, '../.env.example'), 'utf8');

/** The variables with the words "Required in production". */
export const namedAsRequired = sectionsOf(example)
  .flatMap(({ variables }) => variables)
  .filter(({ text }) => text.startsWith('Required in production'))
  .flatMap(({ names }) => names);

const part = sectionsOf(example).map(({ title, introduction, variables }) => {
  const rows = variables.map(({ names, text }) => {
    const [meaning = '', value = ''] = text.split(/(?:^| )Default: /);
    return [names.map((name) => `\`${name}\``).join(' '), meaning, value];
  });
  const head = [`### ${title}`, ...(introduction === '' ? [] : [introduction])];
  return [...head, table(['Variable', 'Meaning', 'Default'], rows)].join('\n\n');
});

export const configurationPage = generatedPage('configuration.md', part.join('\n\n'));
if (import.meta.main) configurationPage.write();
