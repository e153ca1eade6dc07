import { ZxcvbnFactory } from '@zxcvbn-ts/core';
import * as common from '@zxcvbn-ts/language-common';
import * as english from '@zxcvbn-ts/language-en';
import { estimated, MAX_SUBSTITUTIONS } from '../../../server/shared/password-words.ts';
import type { Language } from '../../../server/shared/texts/languages.ts';

/** A Web Worker with dictionaries of the service: those of all languages would take megabytes. */
const dictionaries: Record<Language, () => Promise<{ dictionary: object }>> = {
  en: async () => english,
  de: () => import('@zxcvbn-ts/language-de'),
  es: () => import('@zxcvbn-ts/language-es-es'),
  fr: () => import('@zxcvbn-ts/language-fr'),
};

let estimator: Promise<ZxcvbnFactory> | undefined;
const load = async (language: Language) =>
  new ZxcvbnFactory({
    dictionary: { ...common.dictionary, ...english.dictionary, ...(await dictionaries[language]()).dictionary },
    graphs: common.adjacencyGraphs,
    l33tMaxSubstitutions: MAX_SUBSTITUTIONS,
  });

interface Asked {
  password: string;
  words: string[];
  /** The same in every message. */
  language: Language;
}

addEventListener('message', async ({ data: { password, words, language } }: MessageEvent<Asked>) => {
  estimator ??= load(language);
  postMessage({ password, score: (await estimator).check(estimated(password), words).score });
});
