/**
 * The colours that the pages derive from BRAND_COLOR, by custom property of client/pages/styles/tokens.css, and a check of
 * their contrast (WCAG 2.2, success criterion 1.4.3).
 */

/** The colours of each scheme, as in tokens.css. */
export const pageColors = {
  light: {
    ground: '#f7f7f8',
    surface: '#ffffff',
    text: '#18181b',
    muted: '#5b5b66',
    line: '#e4e4e9',
    accent: '#4f46e5',
    onAccent: '#ffffff',
  },
  dark: {
    ground: '#111114',
    surface: '#19191d',
    text: '#ededf0',
    muted: '#a3a3ae',
    line: '#2e2e36',
    accent: '#a5a8fb',
    onAccent: '#16162a',
  },
} as const;

/** The colours of one scheme. `accent` is for links and buttons, `tint` for surfaces beneath them. */
export interface SchemeColors {
  accent: string;
  accentStrong: string;
  onAccent: string;
  tint: string;
}

export type BrandColors = Record<keyof typeof pageColors, SchemeColors>;

/** For text of any size; user interface components need only 3:1. */
const LEAST_CONTRAST = 4.5;
/** The share of black or white added per step until a colour is readable. */
const STEP = 0.02;

/** Red, green and blue, 0 to 255. */
const channelsOf = (color: string): number[] =>
  [1, 3, 5].map((start) => Number.parseInt(color.slice(start, start + 2), 16));

/** Mixes `share` (0 to 1) of `other` into a colour. */
const mix = (color: string, other: string, share: number): string => {
  const others = channelsOf(other);
  const mixed = channelsOf(color).map((channel, i) => Math.round(channel + ((others[i] ?? 0) - channel) * share));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
};

/** https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast ratio of two colours (`#rrggbb`), 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

const schemeOf = (
  scheme: keyof typeof pageColors,
  accent: string,
  { strong, tint }: { strong: [other: string, share: number]; tint: number },
): SchemeColors => ({
  accent,
  accentStrong: mix(accent, ...strong),
  onAccent: pageColors[scheme].onAccent,
  tint: mix(pageColors[scheme].surface, accent, tint),
});

const lightOf = (accent: string) => schemeOf('light', accent, { strong: ['#000000', 0.15], tint: 0.08 });
const darkOf = (accent: string) => schemeOf('dark', accent, { strong: ['#ffffff', 0.35], tint: 0.1 });

/** The lowest contrast of a scheme: its links on each background, and the labels on its buttons. */
const worstOf = (scheme: keyof typeof pageColors, { accent, tint, onAccent }: SchemeColors): number => {
  const { ground, surface } = pageColors[scheme];
  return Math.min(...[ground, surface, tint, onAccent].map((other) => contrast(accent, other)));
};

/** The colour itself, or the first readable mix with a growing share of `other`. */
function readable(scheme: keyof typeof pageColors, color: string, other: string): string {
  const colorsOf = scheme === 'light' ? lightOf : darkOf;
  for (let share = 0; share < 1; share += STEP) {
    const mixed = mix(color, other, share);
    if (worstOf(scheme, colorsOf(mixed)) >= LEAST_CONTRAST) return mixed;
  }
  return other;
}

/** Undefined if links and buttons of this colour (`#rrggbb`) are readable on light pages; else the reason. */
export function problemWithColor(color: string): string | undefined {
  const worst = worstOf('light', lightOf(color));
  if (worst >= LEAST_CONTRAST) return undefined;
  const ratio = (Math.floor(worst * 100) / 100).toFixed(2);
  return `is too light for links and for buttons with white labels: a contrast of ${ratio}:1, and ${LEAST_CONTRAST}:1 is needed. ${readable('light', color, '#000000')} would do`;
}

/** The colour for light pages and mails, and for dark pages a lighter one if needed. */
export const colorsOfBrand = (color: string): BrandColors => ({
  light: lightOf(color),
  dark: darkOf(readable('dark', color, '#ffffff')),
});
