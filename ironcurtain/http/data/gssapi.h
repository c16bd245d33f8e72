/* What ironcurtain.http.negotiate uses of GSS-API (RFC 2744; gss_set_neg_mechs: RFC 4178), as MIT Kerberos declares it. */

typedef uint32_t OM_uint32;
typedef struct gss_name_struct *gss_name_t;
typedef struct gss_cred_id_struct *gss_cred_id_t;
typedef struct gss_ctx_id_struct *gss_ctx_id_t;
typedef struct { OM_uint32 length; void *elements; } gss_OID_desc;
typedef struct { size_t count; gss_OID_desc *elements; } gss_OID_set_desc;
typedef struct { size_t length; void *value; } gss_buffer_desc;

#define GSS_C_INITIATE 1
#define GSS_C_MUTUAL_FLAG 2
#define GSS_C_MECH_CODE 2
#define GSS_S_COMPLETE 0

OM_uint32 gss_import_name(OM_uint32 *minor, gss_buffer_desc *text, gss_OID_desc *kind, gss_name_t *name);
OM_uint32 gss_acquire_cred(OM_uint32 *minor, gss_name_t name, OM_uint32 seconds, gss_OID_set_desc *mechanisms, int usage,
    gss_cred_id_t *credential, gss_OID_set_desc **actual, OM_uint32 *seconds_left);
OM_uint32 gss_set_neg_mechs(OM_uint32 *minor, gss_cred_id_t credential, gss_OID_set_desc *mechanisms);
OM_uint32 gss_init_sec_context(OM_uint32 *minor, gss_cred_id_t credential, gss_ctx_id_t *context, gss_name_t name,
    gss_OID_desc *mechanism, OM_uint32 flags, OM_uint32 seconds, void *bindings, gss_buffer_desc *input,
    gss_OID_desc **actual, gss_buffer_desc *output, OM_uint32 *actual_flags, OM_uint32 *seconds_left);
OM_uint32 gss_display_status(OM_uint32 *minor, OM_uint32 status, int kind, gss_OID_desc *mechanism, OM_uint32 *more,
    gss_buffer_desc *text);
OM_uint32 gss_release_buffer(OM_uint32 *minor, gss_buffer_desc *buffer);
OM_uint32 gss_release_name(OM_uint32 *minor, gss_name_t *name);
OM_uint32 gss_release_cred(OM_uint32 *minor, gss_cred_id_t *credential);
OM_uint32 gss_delete_sec_context(OM_uint32 *minor, gss_ctx_id_t *context, gss_buffer_desc *output);
