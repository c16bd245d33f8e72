/* What is used of libghostty-vt, as pyghostty 0.1.3 has it; ironcurtain/terminal/ghostty_library.py reads this. Enumerations are int. */

typedef struct GhosttyTerminalImpl* GhosttyTerminal;
typedef struct GhosttySnapshotDecoderImpl* GhosttySnapshotDecoder;
typedef struct GhosttyRenderStateImpl* GhosttyRenderState;
typedef struct GhosttyRenderStateRowIteratorImpl* GhosttyRenderStateRowIterator;
typedef struct GhosttyFormatterImpl* GhosttyFormatter;
typedef struct {
    const uint8_t* ptr;
    size_t len;
} GhosttyString;
typedef struct {
    uint8_t r;
    uint8_t g;
    uint8_t b;
} GhosttyColorRgb;
typedef uint64_t GhosttyCell;
typedef uint64_t GhosttyRow;
typedef struct {
    const GhosttyCell* ptr;
    size_t len;
} GhosttyCellsView;
typedef union {
    uint8_t palette;
    GhosttyColorRgb rgb;
    uint64_t _padding;
} GhosttyStyleColorValue;
typedef struct {
    int tag;
    GhosttyStyleColorValue value;
} GhosttyStyleColor;
typedef struct {
    size_t size;
    GhosttyStyleColor fg_color;
    GhosttyStyleColor bg_color;
    GhosttyStyleColor underline_color;
    bool bold;
    bool italic;
    bool faint;
    bool blink;
    bool inverse;
    bool invisible;
    bool strikethrough;
    bool overline;
    int underline;
} GhosttyStyle;
typedef struct {
    size_t size;
    void* node;
    uint16_t x;
    uint16_t y;
} GhosttyGridRef;
/* The original has a union, which cffi cannot pass by value; a structure of the same layout is passed alike. */
typedef struct {
    int tag;
    struct {
        uint16_t x;
        uint32_t y;
        uint64_t rest;
    } value;
} GhosttyPointS;
typedef struct {
    size_t size;
    GhosttyGridRef start;
    GhosttyGridRef end;
    bool rectangle;
} GhosttySelection;
typedef struct {
    size_t size;
    int emit;
    bool unwrap;
    bool trim;
    const GhosttySelection* selection;
} GhosttyTerminalSelectionFormatOptions;
typedef struct {
    uint16_t mode;
    bool value;
} GhosttyTerminalModeConfig;
typedef struct {
    size_t size;
    bool cursor;
    bool style;
    bool hyperlink;
    bool protection;
    bool kitty_keyboard;
    bool charsets;
} GhosttyFormatterScreenExtra;
typedef struct {
    size_t size;
    bool palette;
    bool modes;
    bool scrolling_region;
    bool tabstops;
    bool pwd;
    bool keyboard;
    GhosttyFormatterScreenExtra screen;
} GhosttyFormatterTerminalExtra;
typedef struct {
    size_t size;
    int emit;
    bool unwrap;
    bool trim;
    GhosttyFormatterTerminalExtra extra;
    const GhosttySelection* selection;
} GhosttyFormatterTerminalOptions;

int ghostty_cell_get(GhosttyCell cell, int data, void* out);
int ghostty_cell_get_multi(GhosttyCell cell, size_t count, const int* keys, void** values, size_t* out_written);
int ghostty_row_get(GhosttyRow row, int data, void* out);
int ghostty_grid_ref_cell(const GhosttyGridRef* ref, GhosttyCell* out_cell);
int ghostty_grid_ref_graphemes(const GhosttyGridRef* ref, uint32_t* buf, size_t buf_len, size_t* out_len);
int ghostty_grid_ref_hyperlink_uri(const GhosttyGridRef* ref, uint8_t* buf, size_t buf_len, size_t* out_len);
int ghostty_grid_ref_style(const GhosttyGridRef* ref, GhosttyStyle* out_style);
int ghostty_terminal_select_all(GhosttyTerminal terminal, GhosttySelection* out_selection);
int ghostty_terminal_selection_format_buf(GhosttyTerminal terminal, GhosttyTerminalSelectionFormatOptions options, uint8_t* buf, size_t buf_len, size_t* out_written);
int ghostty_terminal_new(void* allocator, GhosttyTerminal* terminal, uint16_t cols, uint16_t rows);
void ghostty_terminal_free(GhosttyTerminal terminal);
int ghostty_terminal_resize(GhosttyTerminal terminal, uint16_t cols, uint16_t rows, uint32_t cell_width_px, uint32_t cell_height_px);
int ghostty_terminal_set(GhosttyTerminal terminal, int option, const void* value);
void ghostty_terminal_vt_write(GhosttyTerminal terminal, const uint8_t* data, size_t len);
int ghostty_terminal_continuation_buf(GhosttyTerminal terminal, uint8_t* buf, size_t buf_len, size_t* out_written);
int ghostty_terminal_get(GhosttyTerminal terminal, int data, void* out);
int ghostty_terminal_grid_ref(GhosttyTerminal terminal, GhosttyPointS point, GhosttyGridRef* out_ref);
int ghostty_formatter_terminal_new(void* allocator, GhosttyFormatter* formatter, GhosttyTerminal terminal, GhosttyFormatterTerminalOptions options);
int ghostty_formatter_format_buf(GhosttyFormatter formatter, uint8_t* buf, size_t buf_len, size_t* out_written);
void ghostty_formatter_free(GhosttyFormatter formatter);
int ghostty_render_state_new(void* allocator, GhosttyRenderState* state);
void ghostty_render_state_free(GhosttyRenderState state);
int ghostty_render_state_update(GhosttyRenderState state, GhosttyTerminal terminal);
int ghostty_render_state_get(GhosttyRenderState state, int data, void* out);
int ghostty_render_state_row_iterator_new(void* allocator, GhosttyRenderStateRowIterator* out_iterator);
void ghostty_render_state_row_iterator_free(GhosttyRenderStateRowIterator iterator);
bool ghostty_render_state_row_iterator_next(GhosttyRenderStateRowIterator iterator);
int ghostty_render_state_row_get(GhosttyRenderStateRowIterator iterator, int data, void* out);
int ghostty_snapshot_encode_buf(GhosttyTerminal terminal, uint8_t* buf, size_t buf_len, size_t* out_written);
int ghostty_snapshot_decoder_new_buf(void* allocator, GhosttySnapshotDecoder* decoder, const uint8_t* ptr, size_t len);
void ghostty_snapshot_decoder_free(GhosttySnapshotDecoder decoder);
int ghostty_snapshot_decoder_decode(GhosttySnapshotDecoder decoder, GhosttyTerminal* terminal);

#define GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE 2
#define GHOSTTY_CELL_CONTENT_BG_COLOR_RGB 3
#define GHOSTTY_CELL_CONTENT_CODEPOINT_GRAPHEME 1
#define GHOSTTY_CELL_DATA_CODEPOINT 1
#define GHOSTTY_CELL_DATA_COLOR_PALETTE 10
#define GHOSTTY_CELL_DATA_COLOR_RGB 11
#define GHOSTTY_CELL_DATA_CONTENT_TAG 2
#define GHOSTTY_CELL_DATA_HAS_HYPERLINK 7
#define GHOSTTY_CELL_DATA_PROTECTED 8
#define GHOSTTY_CELL_DATA_STYLE_ID 6
#define GHOSTTY_CELL_DATA_WIDE 3
#define GHOSTTY_CELL_WIDE_NARROW 0
#define GHOSTTY_CELL_WIDE_SPACER_HEAD 3
#define GHOSTTY_CELL_WIDE_SPACER_TAIL 2
#define GHOSTTY_CELL_WIDE_WIDE 1
#define GHOSTTY_FORMATTER_FORMAT_PLAIN 0
#define GHOSTTY_FORMATTER_FORMAT_VT 1
#define GHOSTTY_POINT_TAG_ACTIVE 0
#define GHOSTTY_POINT_TAG_HISTORY 3
#define GHOSTTY_POINT_TAG_SCREEN 2
#define GHOSTTY_RENDER_STATE_DATA_CURSOR_VISUAL_STYLE 10
#define GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR 4
#define GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW 5
#define GHOSTTY_RENDER_STATE_ROW_DATA_RAW 2
#define GHOSTTY_ROW_DATA_WRAP 1
#define GHOSTTY_STYLE_COLOR_PALETTE 1
#define GHOSTTY_STYLE_COLOR_RGB 2
#define GHOSTTY_TERMINAL_CURSOR_STYLE_BAR 0
#define GHOSTTY_TERMINAL_CURSOR_STYLE_BLOCK 1
#define GHOSTTY_TERMINAL_CURSOR_STYLE_UNDERLINE 2
#define GHOSTTY_TERMINAL_DATA_ACTIVE_SCREEN 6
#define GHOSTTY_TERMINAL_DATA_COLS 1
#define GHOSTTY_TERMINAL_DATA_CURSOR_PENDING_WRAP 5
#define GHOSTTY_TERMINAL_DATA_CURSOR_X 3
#define GHOSTTY_TERMINAL_DATA_CURSOR_Y 4
#define GHOSTTY_TERMINAL_DATA_KITTY_KEYBOARD_FLAGS 8
#define GHOSTTY_TERMINAL_DATA_MODE 37
#define GHOSTTY_TERMINAL_DATA_ROWS 2
#define GHOSTTY_TERMINAL_DATA_SCROLLBACK_ROWS 15
#define GHOSTTY_TERMINAL_DATA_TITLE 12
#define GHOSTTY_TERMINAL_DATA_VT_GROUND 38
#define GHOSTTY_TERMINAL_OPT_APC_MAX_BYTES 19
#define GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES 39
#define GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES 31
#define GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_FILE 16
#define GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_SHARED_MEM 18
#define GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT 15
#define GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES 27
#define GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES 28
#define GHOSTTY_TERMINAL_SCREEN_ALTERNATE 1
