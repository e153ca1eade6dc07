import { ZxcvbnFactory } from '@zxcvbn-ts/core';
import * as common from '@zxcvbn-ts/language-common';
import * as german from '@zxcvbn-ts/language-de';
import * as english from '@zxcvbn-ts/language-en';
import * as spanish from '@zxcvbn-ts/language-es-es';
import * as french from '@zxcvbn-ts/language-fr';
import { estimated, MAX_SUBSTITUTIONS } from '../../../../shared/password-words.ts';

/** The dictionaries of all languages take 110 MB. */
const estimator = new ZxcvbnFactory({
  dictionary: {
    ...common.dictionary,
    ...english.dictionary,
    ...german.dictionary,
    ...spanish.dictionary,
    ...french.dictionary,
  },
  graphs: common.adjacencyGraphs,
  translations: english.translations,
  l33tMaxSubstitutions: MAX_SUBSTITUTIONS,
});

export interface Guessing {
  password: string;
  words: string[];
}

export interface Guessed {
  /** 0 to 4. */
  score: number;
  /** Sentences in English. */
  advice: string[];
}

/** Estimates how hard a password is to guess for someone who knows these words. */
export function estimate({ password, words }: Guessing): Guessed {
  const { score, feedback } = estimator.check(estimated(password), words);
  const advice = [feedback.warning, feedback.suggestions[0]].filter((text) => typeof text === 'string');
  return { score, advice };
}
