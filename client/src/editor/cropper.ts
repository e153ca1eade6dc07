import { centreOf, moved, type Point, type Square, zoomed, zoomOf } from './square.ts';

export interface Cropper {
  /** What the frame shows, in pixels of the picture: for `cropPicture`. */
  readonly square: Square;
  /** 1 (the largest square) to MAX_ZOOM. Setting it keeps the centre. */
  zoom: number;
  /** Removes the canvas and the listeners. */
  stop(): void;
}

/** Of the frame. */
const KEY_STEP = 0.05;
const KEY_FACTOR = 1.1;
/** Pixels of a wheel that double the picture; trackpads report a pinch as a wheel with Ctrl, in smaller steps. */
const WHEEL_PIXELS = 400;
const PINCH_PIXELS = 100;
/** Firefox reports lines. */
const LINE_PIXELS = 16;

const centre: Point = { x: 0.5, y: 0.5 };

/**
 * Shows a square of a picture in a square element, on a canvas that it adds. Users move and zoom it by mouse and wheel, by
 * fingers and by keyboard (arrows, + and −): give the element a label that says so. `onChange` is called after each change.
 */
export function createCropper(
  frame: HTMLElement,
  bitmap: ImageBitmap,
  onChange: (cropper: Cropper) => void = () => undefined,
): Cropper {
  const listening = new AbortController();
  const canvas = document.createElement('canvas');
  let square = centreOf(bitmap);

  const draw = () => {
    const side = Math.round(frame.clientWidth * devicePixelRatio);
    Object.assign(canvas, { width: side, height: side });
    const context = canvas.getContext('2d');
    context?.drawImage(bitmap, square.x, square.y, square.side, square.side, 0, 0, side, side);
  };
  const show = (next: Square) => {
    square = next;
    draw();
    onChange(cropper);
  };
  const move = (x: number, y: number) => show(moved(bitmap, square, { x, y }));
  const zoomBy = (factor: number, at = centre) => show(zoomed(bitmap, square, factor, at));

  const cropper: Cropper = {
    get square() {
      return square;
    },
    get zoom() {
      return zoomOf(bitmap, square);
    },
    set zoom(zoom) {
      zoomBy(zoom / zoomOf(bitmap, square));
    },
    stop() {
      listening.abort();
      resized.disconnect();
      canvas.remove();
    },
  };

  const listen = <Type extends keyof HTMLElementEventMap>(
    type: Type,
    listener: (event: HTMLElementEventMap[Type]) => void,
  ) => frame.addEventListener(type, listener, { signal: listening.signal, passive: false });

  const keys: Record<string, () => void> = {
    ArrowLeft: () => move(-KEY_STEP, 0),
    ArrowRight: () => move(KEY_STEP, 0),
    ArrowUp: () => move(0, -KEY_STEP),
    ArrowDown: () => move(0, KEY_STEP),
    '+': () => zoomBy(KEY_FACTOR),
    '=': () => zoomBy(KEY_FACTOR),
    '-': () => zoomBy(1 / KEY_FACTOR),
  };
  listen('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    // With them, + and − are the browser's own zoom.
    if (ctrlKey || metaKey || altKey || !Object.hasOwn(keys, key)) return;
    event.preventDefault();
    keys[key]?.();
  });
  listen('wheel', (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE_PIXELS);
    zoomBy(2 ** (-pixels / (event.ctrlKey ? PINCH_PIXELS : WHEEL_PIXELS)), pointOf(frame, event));
  });

  /** Fingers, or the mouse with its button down. */
  const pointers = new Map<number, Point>();
  listen('pointerdown', (event) => {
    if (event.button !== 0) return;
    // Moves beyond the edge count too.
    frame.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, pointOf(frame, event));
  });
  listen('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) return;
    const from = gripOf(pointers);
    pointers.set(event.pointerId, pointOf(frame, event));
    const to = gripOf(pointers);
    const grown = zoomed(bitmap, square, to.spread / from.spread, from.middle);
    show(moved(bitmap, grown, { x: to.middle.x - from.middle.x, y: to.middle.y - from.middle.y }));
  });
  const release = ({ pointerId }: PointerEvent) => pointers.delete(pointerId);
  listen('pointerup', release);
  listen('pointercancel', release);

  // Screen readers pass the arrow keys on to an application.
  Object.assign(frame, { tabIndex: 0, role: 'application' });
  // Otherwise the browser would scroll and zoom the page.
  frame.style.touchAction = 'none';
  Object.assign(canvas.style, { display: 'block', width: '100%', height: '100%' });
  frame.append(canvas);
  const resized = new ResizeObserver(draw);
  resized.observe(frame);
  return cropper;
}

function pointOf(frame: HTMLElement, { clientX, clientY }: MouseEvent): Point {
  const { left, top, width, height } = frame.getBoundingClientRect();
  return { x: (clientX - left) / width, y: (clientY - top) / height };
}

/** The middle of the first two pointers and the distance between them; of one pointer the distance is 1. */
function gripOf(pointers: ReadonlyMap<number, Point>): { middle: Point; spread: number } {
  const [first = centre, second] = pointers.values();
  if (!second) return { middle: first, spread: 1 };
  return {
    middle: { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 },
    spread: Math.max(Math.hypot(first.x - second.x, first.y - second.y), 0.01),
  };
}
